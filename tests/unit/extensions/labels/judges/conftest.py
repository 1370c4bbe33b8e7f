import pytest

from doubles.judge_models import JudgeModels, evaluated, labelled, write_project


@pytest.fixture
def judged(tmp_path, monkeypatch):
    """Writes a project, evaluates it with models that grade by given rules, and labels so many answers."""
    monkeypatch.chdir(tmp_path)
    running = []

    def made(cases, sample=None, rubric=None, **rules):
        models = JudgeModels(**rules)
        models.server.__enter__()
        running.append(models.server)
        write_project(tmp_path, models.server, cases, **(rubric or {}))
        evaluated()
        if sample:
            labelled(sample)
        return models

    yield made
    for server in running:
        server.__exit__(None, None, None)
