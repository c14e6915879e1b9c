"""Functions of packages for fitting, statistics, learning, filtering and finance."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from .row import MASK, Row, everywhere

POINTS = np.linspace(-2.0, 2.0, 9)
ANSWERS = np.sin(POINTS) + 0.1 * POINTS**2
RETURNS = np.array([0.01, -0.02, 0.015, 0.007, -0.011, 0.004, 0.02, -0.005])
POINTS_2D = np.array([[0.1, 1.2], [0.7, -0.3], [1.5, 0.4], [-0.6, 0.9], [0.2, -1.1]])
COVARIANCE = np.array([[0.04, 0.006, 0.01], [0.006, 0.09, 0.02], [0.01, 0.02, 0.06]])
# Some packages write into what they are given.
for array in (POINTS, ANSWERS, RETURNS, POINTS_2D, COVARIANCE):
    array.setflags(write=False)

RAISES = dict.fromkeys(("jit(grad)", "vmap(grad)"), 'handles np.errstate(divide="raise"), which has no meaning there')


def lmfit_model(model: Any, x: Any) -> Any:
    """A peak of lmfit, by its parameters."""
    return np.sum(model().eval(x=POINTS.copy(), amplitude=x[0], center=x[1], sigma=x[2]))


def lmfit_residual(minimizer: Any, x: Any) -> Any:
    """The residuals that lmfit minimizes, at values of its parameters."""
    lmfit = importlib.import_module("lmfit")
    parameters = lmfit.Parameters()
    parameters.add("a", value=1.0)
    parameters.add("b", expr="2 * a")
    parameters["a"].value = x
    return np.sum((parameters["a"] * POINTS + parameters["b"] - ANSWERS) ** 2)


def log_likelihood(model: Any, x: Any) -> Any:
    """The log-likelihood of a model of statsmodels with a constant and a slope."""
    answers = (ANSWERS > 0).astype(float)
    return model(answers, np.column_stack([np.ones(9), POINTS])).loglike(x)


def glm(model: Any, x: Any) -> Any:
    """The log-likelihood of a Poisson regression."""
    families = importlib.import_module("statsmodels.api").families
    design = np.column_stack([np.ones(9), POINTS])
    return model(np.arange(9.0), design, family=families.Poisson()).loglike(x)


def arima(model: Any, x: Any) -> Any:
    """The log-likelihood of an autoregressive model, by statsmodels' filter in C."""
    return model(ANSWERS, order=(1, 0, 0)).loglike(x)


def kernel(kernel: Any, x: Any) -> Any:
    """A kernel of Gaussian processes between points."""
    return np.sum(np.sin(kernel(x)(POINTS_2D, POINTS_2D + 0.3)))


def regression(model: Any, x: Any) -> Any:
    """A prediction of a model of scikit-learn that is fitted to answers that are differentiated."""
    return np.sum(model().fit(POINTS_2D, x).predict(POINTS_2D[:2] + 0.1))


def kalman(filter: Any, x: Any) -> Any:
    """The state of filterpy's filter after some measurements."""
    f = filter(dim_x=2, dim_z=1)
    f.F, f.H = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[1.0, 0.0]])
    f.Q, f.R, f.P = np.eye(2) * 0.01, np.eye(1) * x[0], np.eye(2) * x[1]
    for z in (1.0, 1.2, 0.9):
        f.predict()
        f.update(z)
    return f.x[0, 0] + f.x[1, 0]


def unscented(filter: Any, x: Any) -> Any:
    """The state of filterpy's unscented filter."""
    points = importlib.import_module("filterpy.kalman").MerweScaledSigmaPoints(2, 0.1, 2.0, 1.0)
    f = filter(2, 1, 0.1, hx=lambda s: s[:1] ** 2, fx=lambda s, dt: np.array([s[0] + dt * s[1], s[1]]), points=points)
    f.x, f.R, f.P = np.array([1.0, 0.5]), np.eye(1) * x[0], np.eye(2) * x[1]
    for z in (1.0, 1.2):
        f.predict()
        f.update(np.array([z]))
    return f.x[0] + f.x[1]


def pykalman(filter: Any, x: Any) -> Any:
    """The log-likelihood of measurements by pykalman."""
    f = filter(
        transition_matrices=np.array([[1.0, 0.1], [0.0, 1.0]]),
        observation_matrices=np.array([[1.0, 0.0]]),
        transition_covariance=np.eye(2) * x[0],
        observation_covariance=np.eye(1) * x[1],
    )
    return f.loglikelihood(ANSWERS[:, None])


def garch(volatility: Any, x: Any) -> Any:
    """The variances of a GARCH model, whose recursion is compiled."""
    bounds = np.tile([1e-6, 1e6], (8, 1))
    return np.sum(volatility(1, 0, 1).compute_variance(x, RETURNS, np.zeros(8), 1e-4, bounds))


def density(kernel: Any) -> Any:
    """A kernel density of statsmodels."""
    fitted = kernel(ANSWERS)
    fitted.fit(bw=0.5)
    return fitted


ROWS = [
    # Fitting
    *[
        Row(f"lmfit.models.{name}", lmfit_model, [2.0, 0.3, 0.8])
        for name in (
            "GaussianModel",
            "LorentzianModel",
            "VoigtModel",
            "PseudoVoigtModel",
            "MoffatModel",
            "DoniachModel",
            "LognormalModel",
        )
    ],
    Row("lmfit.lineshapes.pearson7", lambda f, x: np.sum(f(POINTS, x[0], x[1], x[2], x[3])), [2.0, 0.3, 0.8, 1.5]),
    Row("lmfit.lineshapes.exponential", lambda f, x: np.sum(f(POINTS, x[0], x[1])), [2.0, 1.3]),
    Row("lmfit.lineshapes.breit_wigner", lambda f, x: np.sum(f(POINTS, x[0], x[1], x[2], 2.0)), [2.0, 0.3, 0.8]),
    Row("lmfit.Parameters", lmfit_residual, 1.2),
    # Statistics
    Row("statsmodels.api.Logit.loglike", log_likelihood, [0.3, 0.8]),
    Row("statsmodels.api.Probit.loglike", log_likelihood, [0.3, 0.8]),
    Row("statsmodels.api.Poisson.loglike", log_likelihood, [0.3, 0.8]),
    Row("statsmodels.api.OLS.fit", lambda m, x: m(x, POINTS_2D).fit().params[0], [0.3, 0.8, 1.1, -0.4, 0.6]),
    Row("statsmodels.api.GLM.loglike", glm, [0.3, 0.8]),
    Row("statsmodels.tsa.arima.model.ARIMA.loglike", arima, [0.1, 0.5, 0.3], everywhere("C code computes it")),
    Row("statsmodels.tsa.stattools.acf", lambda f, x: f(x, nlags=2)[1], [0.3, 0.8, 1.1, -0.4, 0.6]),
    Row("statsmodels.stats.stattools.durbin_watson", lambda f, x: f(x), [0.3, 0.8, 1.1, -0.4, 0.6]),
    Row("statsmodels.stats.stattools.jarque_bera", lambda f, x: f(x)[0], [0.3, 0.8, 1.1, -0.4, 0.6]),
    Row("statsmodels.robust.norms.HuberT.rho", lambda n, x: np.sum(n().rho(x)), [0.3, 2.8]),
    Row("statsmodels.robust.norms.TukeyBiweight.rho", lambda n, x: np.sum(n().rho(x)), [0.3, 2.8]),
    Row("statsmodels.nonparametric.kde.KDEUnivariate.evaluate", lambda k, x: density(k).evaluate(x)[0], 0.4),
    Row(
        "statsmodels.tsa.holtwinters.SimpleExpSmoothing.fit",
        lambda m, x: (
            m(ANSWERS, initialization_method="known", initial_level=x[0]).fit(smoothing_level=x[1], optimized=False).sse
        ),
        [0.4, 0.3],
    ),
    Row(
        "hmmlearn.stats.log_multivariate_normal_density",
        lambda f, x: np.sum(f(POINTS_2D, x, np.ones((2, 2)), "diag")),
        [[0.2, 0.9], [1.0, 0.3]],
    ),
    Row("arch.univariate.volatility.GARCH.compute_variance", garch, [1e-5, 0.1, 0.8]),
    Row(
        "arch.univariate.distribution.StudentsT.loglikelihood",
        lambda d, x: d().loglikelihood([x[0]], RETURNS, np.full(8, x[1])),
        [5.0, 1e-4],
    ),
    # Learning
    *[
        Row(f"sklearn.gaussian_process.kernels.{name}", kernel, 1.3)
        for name in ("RBF", "Matern", "RationalQuadratic", "DotProduct", "ExpSineSquared")
    ],
    Row("sklearn.metrics.pairwise.rbf_kernel", lambda f, x: np.sum(f(x, POINTS_2D)), [[0.3, 0.8]]),
    Row("sklearn.metrics.pairwise.polynomial_kernel", lambda f, x: np.sum(f(x, POINTS_2D)), [[0.3, 0.8]]),
    Row("sklearn.metrics.pairwise.laplacian_kernel", lambda f, x: np.sum(f(x, POINTS_2D)), [[0.3, 0.8]]),
    Row("sklearn.metrics.pairwise.cosine_similarity", lambda f, x: np.sum(f(x, POINTS_2D)), [[0.3, 0.8]]),
    Row("sklearn.metrics.pairwise.euclidean_distances", lambda f, x: np.sum(f(x, POINTS_2D)), [[0.3, 0.8]]),
    Row("sklearn.metrics.mean_squared_error", lambda f, x: f(POINTS[:3], x), [0.3, 0.8, 0.1]),
    Row("sklearn.metrics.r2_score", lambda f, x: f(POINTS[:3], x), [0.3, 0.8, 0.1]),
    Row("sklearn.metrics.log_loss", lambda f, x: f([0, 1, 1], x), [0.3, 0.8, 0.6]),
    Row("sklearn.linear_model.LinearRegression.fit", regression, [0.3, 0.8, 1.1, -0.4, 0.6]),
    Row("sklearn.linear_model.Ridge.fit", regression, [0.3, 0.8, 1.1, -0.4, 0.6]),
    Row(
        "sklearn.preprocessing.StandardScaler.fit_transform",
        lambda s, x: np.sum(s().fit_transform(x) ** 3),
        [[0.3, 0.8], [1.1, -0.4], [0.6, 0.1]],
    ),
    # Filters
    Row("filterpy.kalman.KalmanFilter.update", kalman, [0.5, 2.0]),
    Row("filterpy.kalman.UnscentedKalmanFilter.update", unscented, [0.5, 2.0]),
    Row("filterpy.stats.gaussian", lambda f, x: f(x[0], x[1], x[2]), [0.3, 0.1, 0.8]),
    Row(
        "filterpy.gh.GHFilter.update", lambda g, x: g(x=0.0, dx=0.0, dt=1.0, g=x[0], h=x[1]).update(1.2)[0], [0.6, 0.02]
    ),
    Row("pykalman.KalmanFilter.loglikelihood", pykalman, [0.1, 0.4], everywhere("masked arrays hold the measurements")),
    # Finance
    Row("numpy_financial.npv", lambda f, x: f(x, [-100.0, 39.0, 59.0, 55.0, 20.0]), 0.08),
    Row("numpy_financial.pmt", lambda f, x: f(x[0], 120, x[1]), [0.006, 2e5]),
    Row("numpy_financial.fv", lambda f, x: f(x[0], 120, x[1], -100.0), [0.004, -100.0]),
    Row("numpy_financial.nper", lambda f, x: f(x[0], x[1], 8000.0), [0.006, -150.0], RAISES),
    Row("numpy_financial.irr", lambda f, x: f(x), [-100.0, 39.0, 59.0, 55.0, 20.0], MASK),
    Row("empyrical.sharpe_ratio", lambda f, x: f(x), [0.01, -0.02, 0.015, 0.007]),
    Row("empyrical.max_drawdown", lambda f, x: f(x), [0.01, -0.02, 0.015, 0.007]),
    Row("empyrical.annual_volatility", lambda f, x: f(x), [0.01, -0.02, 0.015, 0.007]),
    Row("empyrical.sortino_ratio", lambda f, x: f(x), [0.01, -0.02, 0.015, 0.007]),
    Row("empyrical.beta", lambda f, x: f(x, RETURNS[:4]), [0.011, -0.018, 0.015, 0.009]),
    Row("pypfopt.objective_functions.portfolio_variance", lambda f, x: f(x, COVARIANCE), [0.3, 0.5, 0.2]),
    Row(
        "pypfopt.objective_functions.sharpe_ratio",
        lambda f, x: f(x, np.array([0.1, 0.2, 0.15]), COVARIANCE, 0.02),
        [0.3, 0.5, 0.2],
    ),
    Row(
        "pypfopt.risk_models.sample_cov",
        lambda f, x: np.sum(np.asarray(f(x, returns_data=True)) ** 2),
        [[0.01, 0.02], [-0.02, 0.01], [0.015, 0.0]],
        everywhere("C code of pandas computes covariances"),
    ),
    Row("vollib.black_scholes.black_scholes", lambda f, x: f("c", x[0], 95.0, 0.5, 0.01, x[1]), [100.0, 0.2]),
    Row("vollib.black_scholes.greeks.analytical.delta", lambda f, x: f("c", x[0], 95.0, 0.5, 0.01, x[1]), [100.0, 0.2]),
]
