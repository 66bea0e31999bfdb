//===- Calibration.h - What a machine reaches in practice -----*- C++ -*-===//
//
// Measured figures beside a machine's peak rates, one per term of the cost
// model: docs/CostModel.md#9-calibrated-times. Every figure remembers the
// machine on which it was measured, since a machine may borrow from a relative.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_MACHINE_CALIBRATION_H
#define SHARDC_MACHINE_CALIBRATION_H

#include <cstdint>
#include <optional>
#include <string>

namespace shardc {

/// A figure in SI units, and the machine on which it was measured.
struct CalibratedFigure {
  double value = 0;
  std::string machine;
};
using MaybeFigure = std::optional<CalibratedFigure>;

/// The figure, or `otherwise` where nothing was measured.
inline double valueOr(const MaybeFigure &figure, double otherwise) {
  return figure ? figure->value : otherwise;
}

/// What a network reaches: a collective that sends w bytes takes
/// base + latency * steps + w / (bandwidth * rate) + ramp * sqrt(w).
struct NetworkCalibration {
  /// Seconds of any collective, and of each step: of a hop of a torus, of a
  /// doubling of the group on a switch.
  MaybeFigure base, latency;
  /// Fraction of the network's rate, in (0, 1].
  MaybeFigure bandwidth;
  /// Seconds for each square root of a byte.
  MaybeFigure ramp;
  /// The members from which on the switches add in the network.
  MaybeFigure reductionMin;
};

/// What a chip reaches.
struct Calibration {
  /// Fractions, in (0, 1], of the peaks of the matrix units and of HBM.
  MaybeFigure matmul, hbm;
  /// Fraction, in (0, 1], of the peak of the matrix units that kernels of
  /// attention reach; without one that of matmuls.
  MaybeFigure attention;
  /// Seconds that each kernel takes beside its work.
  MaybeFigure overhead;
  /// Kernels, at least 1, that frameworks run for a fusion group; a figure of
  /// the frameworks that were measured, so no machine lends it.
  MaybeFigure kernels;
  /// Fraction, in (0, 1], of their FLOPs that kernels keep in a whole step. The
  /// speed of HBM they keep.
  MaybeFigure step;
  /// Fraction, in (0, 1], of the time that collectives run beside kernels that
  /// costs these nothing: a collective takes processors and bandwidth of HBM.
  MaybeFigure overlap;
  /// The machine of the catalogue that lends what is missing; may be empty.
  std::string like;
};

} // namespace shardc

#endif // SHARDC_MACHINE_CALIBRATION_H
