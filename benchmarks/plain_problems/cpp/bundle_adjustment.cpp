// The Jacobian of bundle adjustment: 13 entries for each row, two rows for each observation.
#include <cmath>
#include <cstdint>

extern "C" void bundle_adjustment(const double* z, int64_t cameras, const int64_t* seeing, const int64_t* seen,
                                  int64_t observations, double* entries) {
    for (int64_t i = 0; i < observations; ++i) {
        const double* c = z + 11 * seeing[i];
        const double* point = z + 11 * cameras + 3 * seen[i];
        double* first = entries + 26 * i;
        double* second = first + 13;
        const double x[3] = {point[0] - c[3], point[1] - c[4], point[2] - c[5]};
        const double focal = c[6], k1 = c[9], k2 = c[10];
        const double angle = std::sqrt(c[0] * c[0] + c[1] * c[1] + c[2] * c[2]);
        const double a[3] = {c[0] / angle, c[1] / angle, c[2] / angle};
        const double cos = std::cos(angle), sin = std::sin(angle), rest = 1.0 - cos;
        const double dot = a[0] * x[0] + a[1] * x[1] + a[2] * x[2];
        const double cross[3] = {a[1] * x[2] - a[2] * x[1], a[2] * x[0] - a[0] * x[2], a[0] * x[1] - a[1] * x[0]};
        double y[3], by_angle[3];
        for (int k = 0; k < 3; ++k) {
            y[k] = x[k] * cos + cross[k] * sin + a[k] * dot * rest;
            by_angle[k] = -x[k] * sin + cross[k] * cos + a[k] * dot * sin;
        }
        const double p = y[0] / y[2], q = y[1] / y[2], square = p * p + q * q;
        const double radial = 1.0 + k1 * square + k2 * square * square;
        const double slope = focal * (k1 + 2.0 * k2 * square);
        // The derivatives of both pixel coordinates in y.
        double g[2][3];
        for (int k = 0; k < 3; ++k) {
            const double dp = ((k == 0) - (k == 2) * p) / y[2], dq = ((k == 1) - (k == 2) * q) / y[2];
            const double ds = slope * 2.0 * (p * dp + q * dq);
            g[0][k] = focal * radial * dp + p * ds;
            g[1][k] = focal * radial * dq + q * ds;
        }
        for (int j = 0; j < 3; ++j) {
            double by_axis[3];
            for (int k = 0; k < 3; ++k) by_axis[k] = ((k == j) - a[k] * a[j]) / angle;
            const double change = by_axis[0] * x[0] + by_axis[1] * x[1] + by_axis[2] * x[2];
            const double turned[3] = {by_axis[1] * x[2] - by_axis[2] * x[1], by_axis[2] * x[0] - by_axis[0] * x[2],
                                      by_axis[0] * x[1] - by_axis[1] * x[0]};
            // Row by row of the rotation: d y / d x_j.
            const double axis_cross[3] = {j == 1 ? -a[2] : j == 2 ? a[1] : 0.0, j == 0 ? a[2] : j == 2 ? -a[0] : 0.0,
                                          j == 0 ? -a[1] : j == 1 ? a[0] : 0.0};
            double w0 = 0, w1 = 0, r0 = 0, r1 = 0;
            for (int k = 0; k < 3; ++k) {
                const double dw = by_angle[k] * a[j] + sin * turned[k] + rest * (by_axis[k] * dot + a[k] * change);
                const double dx = cos * (k == j) + sin * axis_cross[k] + rest * a[k] * a[j];
                w0 += g[0][k] * dw, w1 += g[1][k] * dw;
                r0 += g[0][k] * dx, r1 += g[1][k] * dx;
            }
            first[j] = w0, second[j] = w1;
            first[3 + j] = -r0, second[3 + j] = -r1;
            first[10 + j] = r0, second[10 + j] = r1;
        }
        first[6] = radial * p, second[6] = radial * q;
        first[7] = 1.0, second[7] = 1.0;
        first[8] = focal * square * p, second[8] = focal * square * q;
        first[9] = focal * square * square * p, second[9] = focal * square * square * q;
    }
}
