"""A small library of components, written in the model language itself.

``electrical``, ``translational``, ``rotational`` and ``thermal`` hold acausal components that meet in connectors;
``signals`` holds causal blocks that meet in ``gr.connect(a.y, b.u)``. Every component is an ordinary ``gr.Model``: read
its equations with ``print(Resistor(R=1.0))``, extend it by inheritance, replace it by one of your own.

Conventions that hold in all of them:

- A flow (current, force, torque, heat flow) counts positive *into* the component. What one-ports and two-flange
  components call their own flow (``r.i``, ``spring.f``) enters at ``p`` or ``b`` and is said in each module.
- Physical parameters have no default; a component that lacks one is refused by name when it is used.
- States have no declared start unless said: they begin at zero where nothing connected says otherwise. Give one by
  ``Capacitor(C=1e-6, start={"v": 2.0})``, demand one by ``Capacitor(C=1e-6, v=gr.Variable(2.0, "V", fixed=True))``.
- Sources are driven by their input ``u``: left open it is an external signal (``"source.u"``), bound it is a formula
  (``VoltageSource(u=5.0)``), connected it follows a block (``gr.connect(sine.y, source.u)``). Kinks of external signals
  are ends of integration steps; kinks of the built-in waveforms are found by the error control, which may step over a
  pulse much shorter than everything else in the model.
"""
