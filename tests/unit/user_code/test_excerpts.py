from agentv.user_code.excerpts import tail


def test_nothing_that_steers_a_terminal_is_left():
    assert tail(b"\x1b[31mred\x1b[0m \x1b]0;title\x07done\r\n\x00\x9bend") == "red done\n \ufffdend"
    assert tail("a\u202eb\u2066c".encode()) == "a b c"
