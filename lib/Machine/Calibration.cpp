//===- Calibration.cpp - What a machine reaches in practice ---------------===//

#include "shardc/Machine/Machine.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace shardc;

static constexpr MaybeFigure Calibration::*kChipFigures[] = {
    &Calibration::matmul,   &Calibration::attention, &Calibration::hbm,
    &Calibration::overhead, &Calibration::step,      &Calibration::overlap};

static constexpr MaybeFigure NetworkCalibration::*kNetworkFigures[] = {
    &NetworkCalibration::base, &NetworkCalibration::latency,
    &NetworkCalibration::bandwidth, &NetworkCalibration::ramp,
    &NetworkCalibration::reductionMin};

/// Fills in what `own` lacks; true if it then has any figure.
template <typename T, size_t N>
static bool borrow(T &own, const T *lender,
                   MaybeFigure T::*const (&figures)[N]) {
  bool any = false;
  for (MaybeFigure T::*figure : figures) {
    if (!(own.*figure) && lender)
      own.*figure = lender->*figure;
    any |= (own.*figure).has_value();
  }
  return any;
}

static bool isTorus(const Network &network) {
  return network.kind == Network::Kind::Torus;
}

bool shardc::calibrate(Machine &machine, const Machine *relative) {
  machine.isCalibrated = true;
  bool any = borrow(machine.calibration,
                    relative ? &relative->calibration : nullptr, kChipFigures);
  for (auto [index, network] : enumerate(machine.networks)) {
    const NetworkCalibration *lender = nullptr;
    if (relative && index < relative->networks.size() &&
        isTorus(relative->networks[index]) == isTorus(network))
      lender = &relative->networks[index].calibration;
    any |= borrow(network.calibration, lender, kNetworkFigures);
  }
  return any;
}
