from agentv.cli import main


def test_words_that_are_meant_otherwise_are_told(capsys):
    said = {
        ("show", "last"): "no command 'show'; did you mean 'results show'?",
        ("report",): "no command 'report'; did you mean 'results report'?",
        ("eval", "a.eval.yaml", "--prompts", "brief"): "'--prompts'; did you mean --prompt NAME?",
        ("eval", "--filter-failing", "out.json"): "'--filter-failing'; did you mean --last-failed?",
        ("eval", "-c", "promptfooconfig.yaml"): "no option '-c'; eval files are arguments",
    }
    for words, message in said.items():
        assert main.run(list(words)) == 2, words
        assert message in capsys.readouterr().err
