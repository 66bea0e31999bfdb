//===- Serving.h - Prefill and decode of one program ----------*- C++ -*-===//
//
// The `serve` block of a program as attributes, and the two phases that
// `shd-serve` makes of it (docs/Serving.md).
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DIALECT_SHD_IR_SERVING_H
#define SHARDC_DIALECT_SHD_IR_SERVING_H

#include "shardc/Dialect/Shd/IR/Shd.h"

namespace shardc::shd {

/// On the program: the `serve` block (Serving), and the phase that the program
/// is to become, `prefill` or `decode`.
inline constexpr llvm::StringLiteral kServing = "shd.serving";
inline constexpr llvm::StringLiteral kServingPhase = "shd.serving_phase";
/// On attention over a cache, and on elementwise operations that read the cache
/// for it: the mean share of the key positions that hold tokens. It changes the
/// price, never the values.
inline constexpr llvm::StringLiteral kFilledKeys = "shd.filled_keys";

enum class ServingPhase : uint8_t { Prefill, Decode };

/// The name of a phase in attributes and reports.
llvm::StringRef stringify(ServingPhase phase);

/// What a `serve` block says, with the extents of its indices as written.
struct Serving {
  /// Names of the indices and of the input of positions.
  std::string batch, sequence, context, position;
  /// Sequences that decode together, and positions of a cache.
  int64_t sequences = 1, capacity = 1;
  /// Tokens of a request's prompt, and tokens that it generates.
  int64_t prompt = 1, generate = 1;
  /// Prompts that one prefill takes.
  int64_t promptBatch = 1;
  /// Prefill and decode run on machines of their own.
  bool separate = false;

  mlir::DictionaryAttr toAttr(mlir::MLIRContext *context) const;
  static Serving of(mlir::DictionaryAttr attr);
  /// That of a program; nothing without a `serve` block.
  static std::optional<Serving> of(ProgramOp program);

  /// Key positions that a decode step reads, on average over the generated
  /// tokens, and those of the last one.
  double meanKeys(std::optional<int64_t> window) const;
  double lastKeys(std::optional<int64_t> window) const;

  /// Indices of a phase with their extents.
  llvm::SmallVector<std::pair<std::string, int64_t>, 3>
  extentsOf(ServingPhase phase) const;
};

/// The phase that a program is to become; nothing if it is none of two.
std::optional<ServingPhase> servingPhase(ProgramOp program);
/// Lets attention over the cache read what it holds on average over the
/// generated tokens, or with `last` at the last of them.
void setFilledKeys(ProgramOp program, const Serving &serving, bool last);
/// The value of kFilledKeys; 1 without.
double filledKeys(mlir::Operation *op);

} // namespace shardc::shd

#endif // SHARDC_DIALECT_SHD_IR_SERVING_H
