from agentv.assertions.javascript_code import JavaScriptCode
from agentv.registry.fields import JavaScriptSource
from agentv.spec.fingerprints import digests_behind


def test_the_file_of_a_javascript_assertion_is_part_of_what_it_is(tmp_path):
    path = tmp_path / "check.ts"
    path.write_text("export default () => true\n")
    assertion = JavaScriptCode(JavaScriptSource(path=str(path), name="polite"))
    (before,) = digests_behind(assertion)
    path.write_text("export default () => false // changed\n")
    assert digests_behind(assertion) != (before,)
    assert digests_behind(JavaScriptCode(JavaScriptSource(code="true"))) == ()
