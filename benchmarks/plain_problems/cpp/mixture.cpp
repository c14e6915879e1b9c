// The gradient of the log likelihood of a mixture of Gaussians with a Wishart prior.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

extern "C" void mixture(const double* log_weights, const double* means, const double* factors, const double* points,
                        const double* prior, int64_t n, int64_t k, int64_t d, double* weights_ct, double* means_ct,
                        double* factors_ct) {
    const int64_t below = d * (d - 1) / 2, row = d + below;
    std::vector<double> diagonal(k * d), terms(k), log_det(k), between(k * d), whitened(k * d), back(d);
    for (int64_t c = 0; c < k; ++c)
        for (int64_t i = 0; i < d; ++i) {
            diagonal[c * d + i] = std::exp(factors[c * row + i]);
            log_det[c] += factors[c * row + i];
        }
    for (int64_t s = 0; s < n; ++s) {
        double top = -INFINITY, sum = 0;
        for (int64_t c = 0; c < k; ++c) {
            double* x = &between[c * d];
            double* y = &whitened[c * d];
            for (int64_t i = 0; i < d; ++i) {
                x[i] = points[s * d + i] - means[c * d + i];
                y[i] = diagonal[c * d + i] * x[i];
            }
            const double* l = factors + c * row + d;
            for (int64_t j = 0; j < d; ++j) {
                for (int64_t i = j + 1; i < d; ++i) y[i] += l[i - j - 1] * x[j];
                l += d - j - 1;
            }
            double square = 0;
            for (int64_t i = 0; i < d; ++i) square += y[i] * y[i];
            terms[c] = log_weights[c] + log_det[c] - 0.5 * square;
            top = std::max(top, terms[c]);
        }
        for (int64_t c = 0; c < k; ++c) sum += terms[c] = std::exp(terms[c] - top);
        for (int64_t c = 0; c < k; ++c) {
            const double share = terms[c] / sum;
            const double* x = &between[c * d];
            const double* y = &whitened[c * d];
            double* ct = factors_ct + c * row;
            weights_ct[c] += share;
            for (int64_t i = 0; i < d; ++i) {
                ct[i] += share * (1.0 - y[i] * x[i] * diagonal[c * d + i]);
                back[i] = diagonal[c * d + i] * y[i];
            }
            const double* l = factors + c * row + d;
            ct += d;
            for (int64_t j = 0; j < d; ++j) {
                double dot = 0;
                const double scaled = share * x[j];
                for (int64_t i = j + 1; i < d; ++i) {
                    ct[i - j - 1] -= scaled * y[i];
                    dot += l[i - j - 1] * y[i];
                }
                back[j] += dot;
                l += d - j - 1, ct += d - j - 1;
            }
            for (int64_t i = 0; i < d; ++i) means_ct[c * d + i] += share * back[i];
        }
    }
    double top = -INFINITY, sum = 0;
    for (int64_t c = 0; c < k; ++c) top = std::max(top, log_weights[c]);
    for (int64_t c = 0; c < k; ++c) sum += std::exp(log_weights[c] - top);
    for (int64_t c = 0; c < k; ++c) {
        weights_ct[c] -= n * std::exp(log_weights[c] - top) / sum;
        double* ct = factors_ct + c * row;
        const double squared = prior[0] * prior[0];
        for (int64_t i = 0; i < d; ++i) ct[i] += squared * diagonal[c * d + i] * diagonal[c * d + i] - prior[1];
        for (int64_t i = 0; i < below; ++i) ct[d + i] += squared * factors[c * row + d + i];
    }
}
