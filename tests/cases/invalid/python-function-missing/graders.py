from json import *
