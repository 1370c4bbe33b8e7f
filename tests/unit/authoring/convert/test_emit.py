from pathlib import Path

from agentv.app.authored.convert import convert_document

CONFIGURATION = """\
# yaml-language-server: $schema=https://promptfoo.dev/config-schema.json
# Support answers
description: Support
prompts:
  - "Answer {{ q }} # no comment" # the short one
  - |
    Long
    # text
    {{ q }}
# who answers
providers:
  - echo # no model
defaultTest:
  # for all
  assert:
    - {type: contains, value: a}
tests:
  # first
  - vars: {q: a}
    # must greet
    assert:
      - type: icontains # any case
        value: 'a # b'
# the end
"""

CONVERTED = """\
# Support answers
name: {name}
description: Support
template: nunjucks
missing_vars: empty
regex: javascript
trim: false
# who answers
# no model
targets:
- provider: echo
  thoughts: keep
threshold: 1
# the short one
prompts:
- 'Answer {{{{ q }}}} # no comment'
- |
  Long
  # text
  {{{{ q }}}}
# for all
default_test:
  assert:
  - type: contains
    value: a
tests:
# first
- id: test-1
  vars:
    q: a
  # must greet
  assert:
  # any case
  - type: icontains
    value: 'a # b'
# the end
"""


def written(text: str, tmp_path: Path) -> str:
    source = tmp_path / "promptfooconfig.yaml"
    source.write_text(text)
    return convert_document(source, "promptfoo", None, {}).path.read_text()


def test_comments_stay_at_their_entries(tmp_path: Path) -> None:
    assert written(CONFIGURATION, tmp_path) == CONVERTED.format(name=tmp_path.name)
