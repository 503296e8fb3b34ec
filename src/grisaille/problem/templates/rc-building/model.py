"""A heated house as two thermal masses, with weather that no model gets right."""

import grisaille as gr
from grisaille import der


class House(gr.Model):
    """Indoor air and building envelope: two heat capacities, two resistances.

    What the model leaves out (sun, wind, doors) is white noise on both heat balances. Times are in hours, so that heat
    capacities are in kWh/K.
    """

    Ci = gr.Parameter(1.0, "kWh/K", "heat capacity of the interior", bounds=(0.05, 20.0))
    Ce = gr.Parameter(5.0, "kWh/K", "heat capacity of the envelope", bounds=(0.5, 100.0))
    Rie = gr.Parameter(2.0, "K/kW", "interior to envelope", bounds=(0.1, 50.0))
    Rea = gr.Parameter(5.0, "K/kW", "envelope to ambient", bounds=(0.1, 50.0))

    Ti = gr.Variable(start=20.0, unit="degC", description="interior")
    Te = gr.Variable(start=15.0, unit="degC", description="envelope")

    heating = gr.Input("kW")
    ambient = gr.Input("degC")
    wi = gr.Disturbance(gr.spectra.white(), scale=0.1)
    we = gr.Disturbance(gr.spectra.white(), scale=0.1)
    indoor = gr.Output(Ti, unit="degC")

    equations = [
        Ci * der(Ti) == (Te - Ti) / Rie + heating + Ci * wi,
        Ce * der(Te) == (Ti - Te) / Rie + (ambient - Te) / Rea + Ce * we,
    ]
