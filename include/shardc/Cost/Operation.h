//===- Operation.h - Time of a fusion group on one device -----*- C++ -*-===//
//
// The roofline of one fusion group:
// docs/CostModel.md#2-one-operation-on-one-device.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_COST_OPERATION_H
#define SHARDC_COST_OPERATION_H

#include "shardc/Machine/Machine.h"

namespace shardc {

/// The work of one operation on one device, from local extents. Without bytes:
/// fusion decides which operands and results touch HBM.
struct OpWork {
  /// FLOPs on the matrix units, and the type that they run in ("bf16").
  double matrixFlops = 0;
  std::string computeType;
  /// The matrix units run a kernel of attention, which reaches less than one of
  /// a matmul.
  bool isAttention = false;
  /// Those of `matrixFlops` that the model needs, where the operation also
  /// computes again what it did not keep; without a value all of them.
  std::optional<double> modelFlops;
  /// FLOPs on the vector units.
  double vectorFlops = 0;
  /// Bytes of each operand and result that the operation touches if it is in
  /// HBM (a gather touches rows, not the table).
  llvm::SmallVector<double, 4> operandBytes;
  llvm::SmallVector<double, 1> resultBytes;
};

/// The bound of a group's time; `Host`: the link to the host, or its memory.
enum class OpBound : uint8_t { Compute, Hbm, Host };

/// Terms of a calibrated time (docs/CostModel.md#9-calibrated-times).
struct CalibratedGroup {
  double computeSeconds = 0;
  double hbmSeconds = 0;
  /// Of its kernels, beside their work.
  double overheadSeconds = 0;

  double seconds() const {
    return std::max(computeSeconds, hbmSeconds) + overheadSeconds;
  }
};

/// Bytes that a group reads and writes, by the memory that they are in.
struct GroupTraffic {
  double deviceReads = 0, deviceWrites = 0;
  double hostReads = 0, hostWrites = 0;
  /// Scalars, which both have.
  double scalarReads = 0;

  bool isOnDevice() const { return hostReads == 0 && hostWrites == 0; }
};

/// The part that the host has in a group: what crosses its link, which carries
/// both directions at once, and what its memory moves
/// (docs/CostModel.md#the-host).
struct HostCost {
  double outBytes = 0, inBytes = 0, memoryBytes = 0;
  double outSeconds = 0, inSeconds = 0, memorySeconds = 0;

  double seconds() const {
    return std::max({outSeconds, inSeconds, memorySeconds});
  }
};

/// Cost of one group (or of the part of it on one side of a collective).
struct GroupCost {
  double matrixFlops = 0;
  double vectorFlops = 0;
  double hbmBytes = 0;
  double matrixSeconds = 0;
  /// Those of `matrixSeconds` that are attention's.
  double attentionSeconds = 0;
  double vectorSeconds = 0;
  double hbmSeconds = 0;
  /// On a calibrated machine.
  std::optional<CalibratedGroup> calibrated = std::nullopt;
  /// Set for a group that reads or writes the host's memory.
  std::optional<HostCost> host = std::nullopt;

  double computeSeconds() const {
    return std::max(matrixSeconds, vectorSeconds);
  }
  double deviceSeconds() const {
    return calibrated ? calibrated->seconds()
                      : std::max(computeSeconds(), hbmSeconds);
  }
  double seconds() const {
    return host ? std::max(deviceSeconds(), host->seconds()) : deviceSeconds();
  }
  OpBound bound() const {
    if (host && host->seconds() > deviceSeconds())
      return OpBound::Host;
    bool isCompute = calibrated
                         ? calibrated->computeSeconds > calibrated->hbmSeconds
                         : computeSeconds() > hbmSeconds;
    return isCompute ? OpBound::Compute : OpBound::Hbm;
  }
};

/// Adds the work of `op` (its FLOPs, not its bytes) to `group`. The machine
/// must have a peak for the operation's compute type (see missingPeak).
void addWork(const Machine &machine, const OpWork &op, GroupCost &group);
/// Adds HBM traffic to `group`.
void addTraffic(const Machine &machine, double bytes, GroupCost &group);

/// Adds the traffic of a group that the host has a part in. A host of known
/// memory bandwidth computes the group; what the device has crosses the link.
/// Otherwise the device does, and what the host has crosses it.
void addHostTraffic(const Machine &machine, const GroupTraffic &traffic,
                    GroupCost &group);

/// Calibrates a group with all its work and traffic, which runs in so many
/// kernels, if the machine is calibrated.
void calibrate(const Machine &machine, double kernels, GroupCost &group);

/// The field (`flops.int8`) that the machine lacks for matrix work in a compute
/// type, if it does.
std::optional<std::string> missingPeak(const Machine &machine,
                                       llvm::StringRef computeType);

/// The compute type of an operation on operands of `types` (language type
/// names): the widest; at equal widths the one with the slower peak, types that
/// the machine has no peak for last, then the first. Empty for no types.
std::string computeType(const Machine &machine,
                        llvm::ArrayRef<llvm::StringRef> types);

/// Query-key pairs that attention computes. Causal, with the queries at the
/// last positions, those below the diagonal, half of it included: S * T * (1 -
/// T / 2S), and never less than half of all; a window leaves each query
/// `window` keys.
double attentionPairs(double queries, double keys, bool causal,
                      std::optional<int64_t> window);
/// The pairs of the queries at positions [first, last) with the keys of [begin,
/// end), under a causal mask and perhaps a window.
double maskedPairs(double first, double last, double begin, double end,
                   std::optional<int64_t> window);

/// The queries and keys of an attention, on all devices and on one.
struct AttentionExtents {
  double globalQueries = 1, localQueries = 1;
  double globalKeys = 1, localKeys = 1;
  /// Sizes of the axes that cut the queries and the keys one after another.
  /// Only needed where an extent is padded: 6 queries are 3 and 3 over an axis
  /// of 2, and 2, 1, 2, 1 over a second one.
  llvm::SmallVector<int64_t, 3> queryCuts = {}, keyCuts = {};
};
/// The pairs of the device that computes most, where consecutive queries and
/// keys lie on one device: causal, the one with the last queries and the first
/// keys.
double busiestAttentionPairs(const AttentionExtents &extents, bool causal,
                             std::optional<int64_t> window);

} // namespace shardc

#endif // SHARDC_COST_OPERATION_H
