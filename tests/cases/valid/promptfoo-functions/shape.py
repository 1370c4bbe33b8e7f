def shape(output, context):
    return output.upper()
