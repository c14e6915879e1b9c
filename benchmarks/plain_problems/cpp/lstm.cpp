// The gradient of the recurrent network that guesses characters: forwards with all states kept, then backwards.
#include <cmath>
#include <cstdint>
#include <vector>

constexpr int B = 14;

struct Step {  // what the backward sweep needs of one layer at one character
    double x[B], hidden[B], cell[B], forget[B], add[B], out[B], change[B], squashed[B], result[B];
};

static double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

extern "C" void lstm(const double* main, const double* extra, const double* start, const double* characters,
                     int64_t layers, int64_t count, double* main_ct, double* extra_ct) {
    const int64_t steps = count - 1;
    std::vector<Step> kept(steps * layers);
    std::vector<double> share(steps * B);
    std::vector<double> state(start, start + 2 * layers * B);
    for (int64_t t = 0; t < steps; ++t) {
        double x[B];
        for (int i = 0; i < B; ++i) x[i] = characters[t * B + i] * extra[i];
        for (int64_t l = 0; l < layers; ++l) {
            Step& s = kept[t * layers + l];
            const double *w = main + 8 * l * B, *b = w + 4 * B;
            double *hidden = &state[2 * l * B], *cell = hidden + B;
            for (int i = 0; i < B; ++i) {
                s.x[i] = x[i], s.hidden[i] = hidden[i], s.cell[i] = cell[i];
                s.forget[i] = sigmoid(x[i] * w[i] + b[i]);
                s.add[i] = sigmoid(hidden[i] * w[B + i] + b[B + i]);
                s.out[i] = sigmoid(x[i] * w[2 * B + i] + b[2 * B + i]);
                s.change[i] = std::tanh(hidden[i] * w[3 * B + i] + b[3 * B + i]);
                cell[i] = cell[i] * s.forget[i] + s.add[i] * s.change[i];
                s.squashed[i] = std::tanh(cell[i]);
                s.result[i] = hidden[i] = x[i] = s.out[i] * s.squashed[i];
            }
        }
        double sum = 2.0;
        for (int i = 0; i < B; ++i) sum += share[t * B + i] = std::exp(x[i] * extra[B + i] + extra[2 * B + i]);
        for (int i = 0; i < B; ++i) share[t * B + i] /= sum;
    }
    std::vector<double> state_ct(2 * layers * B, 0.0);
    const double scale = -1.0 / (steps * B);
    for (int64_t t = steps - 1; t >= 0; --t) {
        const double* gold = characters + (t + 1) * B;
        const double* last = kept[t * layers + layers - 1].result;
        double total = 0, x_ct[B];
        for (int i = 0; i < B; ++i) total += gold[i];
        for (int i = 0; i < B; ++i) {
            const double guess_ct = scale * (gold[i] - total * share[t * B + i]);
            extra_ct[B + i] += guess_ct * last[i];
            extra_ct[2 * B + i] += guess_ct;
            x_ct[i] = guess_ct * extra[B + i];
        }
        for (int64_t l = layers - 1; l >= 0; --l) {
            const Step& s = kept[t * layers + l];
            const double* w = main + 8 * l * B;
            double *w_ct = main_ct + 8 * l * B, *b_ct = w_ct + 4 * B;
            double *hidden_ct = &state_ct[2 * l * B], *cell_ct = hidden_ct + B;
            for (int i = 0; i < B; ++i) {
                const double result_ct = x_ct[i] + hidden_ct[i];
                const double c = cell_ct[i] + result_ct * s.out[i] * (1.0 - s.squashed[i] * s.squashed[i]);
                const double z0 = c * s.cell[i] * s.forget[i] * (1.0 - s.forget[i]);
                const double z1 = c * s.change[i] * s.add[i] * (1.0 - s.add[i]);
                const double z2 = result_ct * s.squashed[i] * s.out[i] * (1.0 - s.out[i]);
                const double z3 = c * s.add[i] * (1.0 - s.change[i] * s.change[i]);
                w_ct[i] += z0 * s.x[i], w_ct[B + i] += z1 * s.hidden[i];
                w_ct[2 * B + i] += z2 * s.x[i], w_ct[3 * B + i] += z3 * s.hidden[i];
                b_ct[i] += z0, b_ct[B + i] += z1, b_ct[2 * B + i] += z2, b_ct[3 * B + i] += z3;
                cell_ct[i] = c * s.forget[i];
                hidden_ct[i] = z1 * w[B + i] + z3 * w[3 * B + i];
                x_ct[i] = z0 * w[i] + z2 * w[2 * B + i];
            }
        }
        for (int i = 0; i < B; ++i) extra_ct[i] += x_ct[i] * characters[t * B + i];
    }
}
