//===- Movement.h - What each collective does to a layout -----*- C++ -*-===//

#ifndef SHARDC_COST_MOVEMENT_H
#define SHARDC_COST_MOVEMENT_H

#include "shardc/Cost/Collective.h"

namespace shardc {

/// True if one collective of the kind over `axes` turns `from` into `to`:
/// docs/CostModel.md#3-shardings.
bool performs(const Mesh &mesh, CollectiveKind kind, const Layout &from,
              const Layout &to, AxisSet axes);

} // namespace shardc

#endif // SHARDC_COST_MOVEMENT_H
