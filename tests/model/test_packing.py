"""Models travel by content: pickling, hashing, fingerprints, without their classes."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest
from model.examples import Lowpass, Pendulum

import grisaille as gr
from grisaille import der
from grisaille.errors import ModelError
from grisaille.model import flatten, pack, unpack


def local_model() -> gr.Model:
    class Local(gr.Model):
        """Made inside a function."""

        a = gr.Parameter(1.0, bounds=(0, None), prior=gr.LogNormal(1.0, 0.5))
        b = gr.Parameter(2 * a, prior=gr.Normal(1, 2))
        x = gr.Variable(start=a, size=2)
        w = gr.Disturbance(gr.spectra.rational([1], [1, a, 2]), size=2, correlation=[[1, 0.5], [0.5, 1]])
        y = gr.Output(gr.table(x[0], [0, 1], [0, 1]) + gr.where(x[1] > 0, x[1] ** b, 0), noise=a)
        z = gr.Output(gr.table2(x[0], x[1], [0, 1], [0, 1], [[0, 1], [2, 3]]))

        def equations(self):
            yield der(self.x) == -self.x + self.w

        def noise_covariance(self):
            return {("y", "z"): self.a / 2}

    return Local()


@pytest.mark.parametrize("make", [Pendulum, Lowpass, local_model])
def test_a_pickled_model_is_the_same_model(make):
    model = make()
    twin = pickle.loads(pickle.dumps(model))
    assert twin == model and hash(twin) == hash(model) and twin.fingerprint == model.fingerprint
    assert str(twin) == str(model) and repr(twin) == repr(model)
    assert [e.text for e in flatten(twin).equations] == [e.text for e in flatten(model).equations]
    assert [e.source for e in flatten(twin).equations] == [e.source for e in flatten(model).equations]
    assert dict(twin.parameters) == dict(model.parameters)
    name = next(iter(model.parameters))
    assert twin.replace({name: 3.0}) == model.replace({name: 3.0}) != model


def test_content_needs_no_class_and_no_model_file(tmp_path):
    path = tmp_path / "model.pickle"
    path.write_bytes(pickle.dumps(local_model()))
    code = (
        "import pickle, sys; m = pickle.load(open(sys.argv[1], 'rb')); "
        "print(m.fingerprint, type(m).__name__, m.x[1].path, m.parameters['b'].value)"
    )
    out = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True).stdout
    assert out.split() == [local_model().fingerprint, "Model", "x[1]", "2.0"]


def test_text_round_trip_is_exact():
    content = local_model()._content
    assert pack(unpack(pack(content))) == pack(content)


def test_fingerprint_covers_names_values_and_equations():
    def build(value=1.0, power=2, name="x", remark=""):
        x = gr.Variable(start=0.5)
        k = gr.Parameter(value, description=remark)
        return type("Built", (gr.Model,), {name: x, "k": k, "equations": [der(x) == -k * x**power]})()

    base = build()
    assert build() == base and build(remark="about") == base
    assert (
        len({build().fingerprint, build(2.0).fingerprint, build(power=3).fingerprint, build(name="z").fingerprint}) == 4
    )
    assert build(2.0).structure_key == base.structure_key
    assert base.replace(start={"x": 9.0}).structure_key == base.structure_key
    assert build(power=3).structure_key != base.structure_key
    assert base.replace({"k": 2.0}) == build(2.0)
    assert base != "text" and base in {build()}


def test_structure_keys_see_formulas():
    model = Pendulum()
    assert Pendulum(k=3.0).structure_key == model.structure_key
    assert Pendulum(k=2 * Pendulum.m).structure_key != model.structure_key


def test_components_bound_to_a_parent_cannot_travel_alone():
    class Parent(gr.Model):
        k = gr.Parameter(1.0)

    class Child(gr.Model):
        c = gr.Parameter()

    with pytest.raises(ModelError, match="belongs to another model"):
        pickle.dumps(Child(c=Parent.k))


def test_very_deep_formulas_can_be_pickled():
    class Deep(gr.Model):
        x = gr.Variable(0.0)

        def equations(self):
            total = self.x
            for _ in range(20_000):
                total = total + 1
            yield der(self.x) == total

    model = Deep()
    assert pickle.loads(pickle.dumps(model)) == model
