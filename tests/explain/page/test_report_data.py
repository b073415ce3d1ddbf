"""The page's data and how it becomes one file; what it does in a browser is in `test_browser`."""

import base64
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.calibration import calibration_curve as sklearn_curve
from sklearn.metrics import balanced_accuracy_score, confusion_matrix, log_loss, r2_score

from tartree import TartClassifier, TartRegressor, explain
from tartree.explain.page import bundle, prediction_quality, report_data, write_report
from tartree.explain.page.model_data import pack, plain_model
from tartree.explain.page.report_data import make_record
from tartree.explain.page.row_data import choose_rows, plain_columns
from tests.tolerances import on_cpu

FOLDER = Path(bundle.__file__).parent


class OneFeature(torch.nn.Module):
    """A decision of one's own, which a page cannot hold."""

    def __init__(self, structure, n_features, members):
        super().__init__()
        self.choice = torch.nn.Parameter(torch.randn(members, n_features, structure.n_logits))

    def forward(self, x):
        return x @ torch.softmax(self.choice, dim=1)


def small(n_rows=60, seed=0):
    draw = np.random.default_rng(seed)
    table = pd.DataFrame(draw.normal(size=(n_rows, 3)), columns=list("abc"))
    return table, np.where(table.a + table.b > 0, "yes", "no")


def opaque_model():
    table, y = small()
    return TartClassifier(depth=2, decision=OneFeature, epochs=2, random_state=0).fit(table, y), table, y


@pytest.fixture(scope="module")
def classifier():
    table, y = small()
    return TartClassifier(depth=2, epochs=5, random_state=0).fit(table, y), table, y


def embedded(page):
    """The data of a page, read back as a browser does."""
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


# One file


def test_scripts_are_one_module():
    script = bundle.bundle_scripts()
    assert not re.search(r"^(import|export) ", script, re.MULTILINE)
    names = re.findall(r"^(?:async )?(?:function|const|let|class) (\w+)", script, re.MULTILINE)
    assert len(names) == len(set(names)), "top-level names must differ across files, for they share one scope"
    for path in FOLDER.glob("*.js"):
        declared = re.findall(r"^export (?:function|const|class) (\w+)", path.read_text(), re.MULTILINE)
        assert set(declared) <= set(names), f"{path.name} is not part of the page"


def test_imports_name_what_is_exported():
    for path in FOLDER.glob("*.js"):
        for wanted, name in re.findall(r'^import \{([^}]*)\} from "\./(\w+\.js)";', path.read_text(), re.MULTILINE):
            exported = re.findall(r"^export (?:function|const|class) (\w+)", bundle.read(name), re.MULTILINE)
            assert {own.strip() for own in wanted.split(",")} <= set(exported), f"{path.name} from {name}"


def test_scripts_that_import_each_other_are_an_error(monkeypatch):
    texts = {"a.js": 'import { b } from "./b.js";\n', "b.js": 'import { a } from "./a.js";\n'}
    monkeypatch.setattr(bundle, "read", texts.__getitem__)
    with pytest.raises(ValueError, match=r"in a circle, got a.js -> b.js -> a.js"):
        bundle.bundle_scripts("a.js")


def test_nothing_is_loaded_from_elsewhere():
    for path in FOLDER.iterdir():
        if path.suffix in (".js", ".css", ".html"):
            text = path.read_text().replace("http://www.w3.org/2000/svg", "")  # a name, not an address
            assert not re.search(r"https?:|url\(|@import|fetch\(|XMLHttpRequest|innerHTML|eval\(", text), path.name
            assert path.suffix == ".html" or "</script" not in text


@pytest.mark.parametrize("text", ["</script>", "<!--<script>", "\u2028\u2029", "\ud800", 'quote " & \\', "🫀é"])
def test_text_in_a_script_element(text):
    made = bundle.plain_json({"text": text, text: 1})
    assert not re.search("[<>&\u2028\u2029\ud800]", made)
    assert json.loads(made) == {"text": text, text: 1}
    made.encode()


def test_title_is_escaped():
    page = bundle.make_page("<b>&", {})
    assert "<title>&lt;b&gt;&amp;</title>" in page
    assert "{{" not in re.sub(r"<script.*", "", page, flags=re.DOTALL)


def test_a_page_allows_its_own_script_and_style_only(classifier, tmp_path):
    write_report(*classifier, sizes=(), path=tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert "default-src &#x27;none&#x27;" in policy
    assert policy.count("sha256-") == 2
    assert "unsafe" not in policy


# What it holds


def test_record_of_a_classifier(classifier):
    model, table, y = classifier
    record = make_record(model, table, y, rows=25, title="A title", sizes=())
    assert record["title"] == "A title"
    assert record["task"] == "classification"
    assert record["outputs"] == ["no", "yes"]
    assert record["nRows"] == 60
    assert len(record["rows"]["numbers"]) == len(record["rows"]["truth"]) == 25
    places = record["rows"]["numbers"]
    assert record["rows"]["columns"][0] == table["a"].iloc[places].tolist()
    predicted = on_cpu(model).predict(table.iloc[places]).tolist()
    assert [record["outputs"][k] for k in record["rows"]["predicted"]] == predicted
    full = record["models"][0]
    assert full["layers"] == [[[0, 1]], [[0, 1], [2, 3]]]
    assert sum(node["arrival"] for node in full["members"][0]["nodes"][3:]) == pytest.approx(1, abs=1e-4)
    json.dumps(record, allow_nan=False)


def test_the_file_is_what_was_gathered(classifier, tmp_path):
    model, table, y = classifier
    write_report(model, table, y, tmp_path / "page.html", rows=10, sizes=())
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert embedded(page) == json.loads(json.dumps(make_record(model, table, y, rows=10, sizes=())))
    write_report(model, table, y, str(tmp_path / "again.html"), rows=10, sizes=())
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == page


def test_without_truth(classifier):
    model, table, _ = classifier
    record = make_record(model, table, None, sizes=())
    assert record["quality"] is None
    assert record["rows"]["truth"] is None
    assert "classes" not in record["models"][0]["members"][0]["nodes"][0]


def test_several_targets(tmp_path):
    table, _ = small()
    target = table[["a", "b"]].to_numpy() * [1, 10]
    model = TartRegressor(depth=1, epochs=3, random_state=0).fit(table, target)
    record = make_record(model, table, target, sizes=())
    assert len(record["quality"]) == 2
    found = np.array(record["rows"]["predicted"])
    np.testing.assert_allclose(found, on_cpu(model).predict(table), rtol=1e-6)
    r2 = r2_score(target, on_cpu(model).predict(table), multioutput="raw_values")
    np.testing.assert_allclose([own["r2"] for own in record["quality"]], r2, atol=1e-6)


def test_code_of_ones_own_is_not_embedded():
    model, table, y = opaque_model()
    record = make_record(model, table, y)
    assert record["recomputable"] is False
    assert "decision" not in record["models"][0]["members"][0]


def test_smaller_models(classifier, monkeypatch):
    """With the numbers of their certificates; sizes that are not smaller are left out."""
    model, table, y = classifier
    made = []

    def path(*arguments):
        made.extend(explain.simplification_path(*arguments))
        return made

    monkeypatch.setattr(report_data, "simplification_path", path)
    record = make_record(model, table, y, sizes=[9, 4, 1, 1])
    (smaller,) = made
    assert [own["nLeaves"] for own in record["models"]] == [4, 1]
    found, certificate = record["models"][1]["certificate"], smaller.provenance.certificate
    assert found["measured"] == certificate.measured > 0
    assert found["sampled"] == certificate.sampled > 0
    assert found["bound"] == (None if certificate.bound >= 1 else certificate.bound)
    assert found["score"] == model.with_model(smaller).score(table, y)


@pytest.mark.parametrize(("bound", "shown"), [(0.25, 0.25), (1.0, None), (1.5, None)])
def test_a_bound_that_says_nothing(classifier, monkeypatch, bound, shown):
    model, table, y = classifier
    sizes = {"leaves_before": 4, "leaves_after": 1, "terms_before": None, "terms_after": None}
    certificate = explain.Certificate(0.125, bound, 0.1875, None, len(table), **sizes, low=(), high=())
    smaller = model.model_.record(certificate=certificate)
    asked = []
    monkeypatch.setattr(report_data, "simplification_path", lambda *given: asked.append(given[2]) or [smaller])
    record = make_record(model, table, y, sizes=[1, 3, 2])
    assert asked == [[3, 2, 1]]  # the largest first
    assert record["models"][1]["certificate"]["bound"] == shown


def test_every_tree_has_a_smaller_one():
    for n_leaves in range(2, 300):
        sizes = report_data.usual_sizes(n_leaves)
        assert sizes[-1] == (1 if n_leaves == 2 else 2)
        assert sizes == sorted(set(sizes), reverse=True)
        assert max(sizes) < n_leaves
        assert len(sizes) <= report_data.MOST_SIZES


def test_smaller_models_of_a_regression():
    """Changes have the units of the target."""
    table, _ = small()
    target = 1000 * table["a"].to_numpy()
    model = TartRegressor(depth=1, epochs=3, random_state=0).fit(table, target)
    record = make_record(model, table, target, sizes=[1])
    (one,) = explain.simplification_path(model, table, [1])
    found = record["models"][1]["certificate"]
    change = np.abs(on_cpu(one).predict(table) - on_cpu(model).predict(table)).max()
    assert found["measured"] == pytest.approx(change, rel=1e-5)
    assert found["bound"] == pytest.approx(one.certificate_.bound * model.target_scale_[0])
    assert found["sampled"] == pytest.approx(one.certificate_.sampled * model.target_scale_[0])
    assert max(found["measured"], found["sampled"]) <= found["bound"]


def test_importances(classifier):
    model, table, y = classifier
    found = make_record(model, table, y, sizes=())["importances"]
    np.testing.assert_allclose(found, explain.importances(model, table, y), rtol=1e-3)


@pytest.mark.parametrize("rows", [-1, 2.5, True, "all"])
def test_wrong_rows(classifier, rows):
    with pytest.raises(ValueError, match="rows must be an integer of at least 0, got "):
        make_record(*classifier, rows=rows)


def test_wrong_data(classifier, tmp_path):
    model, table, y = classifier
    with pytest.raises(ValueError, match="X must have at least one row"):
        write_report(model, table.iloc[:0], y[:0], tmp_path / "page.html")
    with pytest.raises(ValueError, match=r"one row each .* \[60, 59\]"):
        write_report(model, table, y[:59], tmp_path / "page.html")
    with pytest.raises(ValueError, match="call fit first"):
        write_report(TartClassifier(), table, y, tmp_path / "page.html")
    assert not list(tmp_path.iterdir())


def test_page_size():
    """Below 2 MB with 1,000 rows of 30 columns with all their digits, 64 leaves, and smaller models beside."""
    draw = np.random.default_rng(0)
    table = pd.DataFrame(draw.normal(size=(1000, 30)), columns=[f"measurement {k}" for k in range(30)])
    y = np.where(table.iloc[:, 0] + table.iloc[:, 1] > 0, "yes", "no")
    model = TartClassifier(depth=6, epochs=1, random_state=0).fit(table, y)
    record = make_record(model, table, y, sizes=())
    for depth in (5, 4, 3, 2):  # as large as those that are simplified
        smaller = TartClassifier(depth=depth, epochs=1, random_state=0).fit(table, y)
        record["models"].append(plain_model(explain.view(smaller, table, y)))
    assert len(bundle.make_page("size", record).encode()) < 2e6


# Parts


def test_packed_arrays():
    single = np.float64(np.float32([[0.1, -2.5], [1e-30, 3e30]]))
    packed = pack(single)
    assert packed["type"] == "f4"
    np.testing.assert_array_equal(np.frombuffer(base64.b64decode(packed["data"]), "<f4"), single.ravel())
    double = np.array([0.1, 1 / 3])
    assert pack(double)["type"] == "f8"
    np.testing.assert_array_equal(np.frombuffer(base64.b64decode(pack(double)["data"]), "<f8"), double)


def test_layers_of_an_irregular_tree(classifier):
    model, table, y = classifier
    view = explain.view(model, table, y)
    plain = plain_model(view)
    assert plain["nLeaves"] == 4
    assert len(plain["members"][0]["conditions"]) == 7
    assert len(plain["members"][0]["flows"]) == 6


def test_rows_are_the_same_every_time():
    assert choose_rows(5, 10).tolist() == [0, 1, 2, 3, 4]
    chosen = choose_rows(10_000, 50)
    assert chosen.tolist() == choose_rows(10_000, 50).tolist() == sorted(set(chosen.tolist()))
    assert len(chosen) == 50
    assert choose_rows(5, 0).tolist() == []


def test_values_of_every_kind():
    table = pd.DataFrame(
        {
            "number": [1.5, np.nan, 3.0, 4.0],
            "day": pd.to_datetime(["2020-01-01", None, "2020-01-03", "2020-01-04"]),
            "truth": pd.array([True, None, False, True], dtype="boolean"),
            "level": ["x", None, "y", "x"],
            "code": pd.Categorical([1, 2, 1, 2]),
            "constant": [1, 1, 1, 1],
        }
    )
    model = TartClassifier(depth=1, epochs=1, random_state=0).fit(table, [0, 1, 0, 1])
    found = plain_columns(table, explain.view(model).columns, np.array([0, 1, 2]))
    assert found == [
        [1.5, None, 3],
        [1577836800, None, 1578009600],
        [True, None, False],
        ["x", None, "y"],
        [1, 2, 1],
        [],
    ]


def test_measures_of_classes():
    draw = np.random.default_rng(0)
    probabilities = draw.dirichlet(np.ones(3), 200)
    truth = draw.integers(0, 3, 200)
    found = prediction_quality.classification_quality(probabilities, truth)
    predicted = probabilities.argmax(axis=1)
    assert found["accuracy"] == pytest.approx((predicted == truth).mean())
    assert found["balancedAccuracy"] == pytest.approx(balanced_accuracy_score(truth, predicted))
    assert found["logLoss"] == pytest.approx(log_loss(truth, probabilities))
    assert found["matrix"] == confusion_matrix(truth, predicted).tolist()
    assert found["majority"] == np.bincount(truth).max() / 200


def test_calibration_is_that_of_sklearn():
    draw = np.random.default_rng(0)
    claimed = draw.uniform(size=500)
    happened = draw.uniform(size=500) < claimed
    observed, predicted = sklearn_curve(happened, claimed, n_bins=10)
    found = prediction_quality.calibration_curve(claimed, happened)
    np.testing.assert_allclose([bin_["observed"] for bin_ in found], observed)
    np.testing.assert_allclose([bin_["predicted"] for bin_ in found], predicted)
    assert sum(bin_["rows"] for bin_ in found) == 500


def test_coverage_of_intervals():
    table, _ = small(400)
    target = np.random.default_rng(1).normal(size=400)
    model = TartRegressor(depth=1, epochs=30, random_state=0).fit(table, target)
    (found,) = make_record(model, table, target, sizes=())["quality"]
    low, high = on_cpu(model).predict_quantiles(table, [0.05, 0.95]).T
    (ninety,) = [own for own in found["coverage"] if own["predicted"] == 0.9]
    assert ninety["observed"] == ((low <= target) & (target <= high)).mean()
    assert abs(ninety["observed"] - 0.9) < 0.05
