from agentv.web.documents import document


def test_the_document_loads_everything_and_holds_nothing():
    shown = document("/static/ab12", "app.js")
    assert [line for line in shown.splitlines() if "/static/" in line] == [
        '<link rel="stylesheet" href="/static/ab12/style.css">',
        '<script src="/static/ab12/vendor/markdown-it.js" defer></script>',
        '<script type="module" src="/static/ab12/app.js"></script>',
    ]
    assert "<style" not in shown
    assert "agentv-token" not in shown


def test_a_token_is_an_attribute_whatever_it_contains():
    assert '<meta name="agentv-token" content="a&quot;&gt;&lt;b">' in document("/static/ab12", "app.js", 'a"><b')
