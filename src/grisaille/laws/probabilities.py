def distributions_of(law, value):
    raise NotImplementedError


def quantiles_of(law, value):
    raise NotImplementedError
