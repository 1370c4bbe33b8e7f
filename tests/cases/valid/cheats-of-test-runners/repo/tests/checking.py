def is_six(value):
    assert value == 6
