//===- AxisRoles.h - What frameworks do along mesh axes -------*- C++ -*-===//
//
// The plans that frameworks for training express: each mesh axis has one role
// for all of the step (docs/Frameworks.md#plans-of-roles).
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_FRONTEND_AXISROLES_H
#define SHARDC_FRONTEND_AXISROLES_H

#include <cstdint>
#include <string>
#include <vector>

namespace shardc {

struct AxisRoles {
  enum class Role : uint8_t {
    /// Sequences of the batch, and whole weights.
    Replicated,
    /// Sequences of the batch; `zero` says what of the weights is split.
    Sharded,
    /// Sharded, but for experts, which it splits.
    Expert,
    /// Parts of sequences.
    Context,
    /// Heads, hidden widths and the vocabulary; between them every device has
    /// all of a sequence, or a part.
    Tensor,
    TensorSequence,
  };
  /// Split beside the batch: nothing, the optimizer's state, also gradients,
  /// also weights.
  enum class Zero : uint8_t { None, Optimizer, Gradients, Weights };
  struct Axis {
    std::string name;
    Role role;
    bool operator==(const Axis &other) const = default;
  };

  /// All axes of more than one device but that of pipeline stages.
  std::vector<Axis> axes;
  Zero zero = Zero::None;
  /// All chunks of a pipeline's stages have as many layers.
  bool hasEqualLayers = false;

  bool operator==(const AxisRoles &other) const = default;
};

} // namespace shardc

#endif // SHARDC_FRONTEND_AXISROLES_H
