//===- Machine.h - Hardware: rates, networks, mesh binding ----*- C++ -*-===//
//
// A machine as the cost model sees it: peaks, memory, networks from the fastest
// to the slowest, and the binding of logical mesh axes to physical ones. Filled
// from hardware files (docs/Language.md#11-describing-a-machine); no MLIR, no
// parsing. Units: FLOP/s, bytes, bytes/s, seconds, USD/h; all per chip.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_MACHINE_MACHINE_H
#define SHARDC_MACHINE_MACHINE_H

#include "shardc/Machine/Calibration.h"
#include "shardc/Sharding/Sharding.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <map>
#include <variant>

namespace shardc {

/// One `field = value unit` of a hardware file, already reduced to SI units;
/// `where` is an opaque handle that errors hand back to the front end.
struct HardwareField {
  enum class Quantity {
    None,
    FlopsPerSecond,
    Bytes,
    BytesPerSecond,
    Seconds,
    UsdPerHour
  };
  std::string name;  // "flops.bf16", "link.bandwidth", "wrap"
  double number = 0; // of a quantity or plain number
  Quantity quantity = Quantity::None;
  std::string word; // `all`, `multiple`, `gpu`, `true`, `none`
  llvm::SmallVector<int64_t, 3> list; // [16, 16], or the argument of a word
  unsigned where = 0;
};

struct HardwareNetwork {
  std::string name; // "ici"
  std::string kind; // "torus", "switch", "mesh"; empty in overrides
  llvm::SmallVector<std::string, 3> members; // [x, y], [node]
  std::vector<HardwareField> fields;
  unsigned where = 0;
};

/// A `calibration` block: its own fields, and fields of networks.
struct HardwareCalibration {
  std::vector<HardwareField> fields;
  std::vector<HardwareNetwork> networks;
  unsigned where = 0;
};

/// A hardware declaration, as parsed.
struct HardwareDescription {
  std::string name;
  std::vector<HardwareField> fields;
  std::vector<HardwareNetwork> networks; // fastest first
  unsigned where = 0;
  /// One at most; more are an error.
  std::vector<HardwareCalibration> calibrations = {};
};

struct Network {
  enum class Kind { Torus, Switch, FullMesh };
  /// When an axis of a torus wraps around.
  enum class WrapRule { None, All, Exactly, MultipleOf };

  std::string name;
  Kind kind = Kind::Switch;
  /// Torus: one name per axis (`x`, `y`, `z`), in the order of the shape.
  /// Otherwise the one name of what the network joins (`gpu`, `node`, `slice`).
  llvm::SmallVector<std::string, 3> members;
  /// Torus: one link, one direction. Otherwise each way per member, as quoted.
  double bandwidth = 0;
  /// The unit that `bandwidth` is quoted per, if not per member: a member of a
  /// faster network (`gpu`), or `chip`. Empty: per member.
  std::string bandwidthPer;
  /// Capacity of the level's own switches, bytes/s each way in total; 0: none.
  double switchBandwidth = 0;
  /// Per hop (torus) or per level crossed.
  double latency = 0;
  WrapRule wrap = WrapRule::None;
  int64_t wrapParameter = 0;
  /// The network sums in flight (SHARP).
  bool inNetworkReduction = false;
  NetworkCalibration calibration;
};

/// Numeric formats in which machines state peaks; keys of `Machine::flops` are
/// the language's type names: "bf16", "int8", "f8e4m3", "f4e2m1", ...
struct Machine {
  std::string name;
  /// Extents, outermost first: slower networks' counts, then the innermost.
  llvm::SmallVector<int64_t, 4> shape;
  /// Stated peaks in FLOP/s (dense), by type name.
  std::map<std::string, double> flops;
  /// Vector units; empty where not stated (their work is then free).
  std::optional<double> vectorFlops;
  double hbmCapacity = 0;
  /// Bytes of it that the runtime takes beside the program (`hbm.reserved`).
  double hbmReserved = 0;
  double hbmBandwidth = 0;
  std::optional<double> vmemCapacity, vmemBandwidth;
  /// The link to the host, each way; the host's memory, a chip's share of it.
  /// A host of known memory bandwidth updates weights whose optimizer's state
  /// it has.
  std::optional<double> hostBandwidth, hostCapacity, hostMemoryBandwidth;
  std::optional<double> usdPerHour;
  /// Largest shape; empty where not stated. Outermost first, one per level.
  llvm::SmallVector<int64_t, 4> maxShape;
  bool collectiveMatmul = false;
  /// Attention may run around a ring of devices.
  bool ringAttention = true;
  /// Fastest first.
  llvm::SmallVector<Network, 3> networks;
  Calibration calibration;
  /// Times are what the calibration says, not rooflines (`--calibrated`).
  bool isCalibrated = false;

  int64_t numChips() const;
  /// The bytes of HBM that a program may take on a device.
  int64_t usableMemory() const { return int64_t(hbmCapacity - hbmReserved); }
  /// Peak of a compute type (docs/CostModel.md#2-one-operation-on-one-device):
  /// f16 falls back to bf16, int4 and f4 to int8, then bf16; f8 and int8 share
  /// theirs; f32 and tf32 run at bf16's. Nothing if no fallback is stated.
  std::optional<double> peak(llvm::StringRef type) const;
};

/// An error in a description, at a field; `note` may carry a fix.
struct MachineError {
  unsigned where = 0;
  std::string message;
  std::string note;
};

template <typename T> using MachineOr = std::variant<T, MachineError>;

/// Width of an element type of the language ("bf16"); 0 for an unknown name.
unsigned elementTypeBits(llvm::StringRef type);

/// The candidate nearest to a misspelt name (ties: the first); empty if every
/// one is more than `maxDistance` edits away.
llvm::StringRef nearestName(llvm::StringRef name,
                            llvm::ArrayRef<llvm::StringRef> candidates,
                            unsigned maxDistance = ~0u);

/// `h100[2, 32, 8]`, or `h100` without a shape.
std::string shapeToString(llvm::StringRef name, llvm::ArrayRef<int64_t> shape);

/// Builds a machine from its description (`base` for an override of a catalogue
/// entry, or null for a new machine). Checks units, signs, required fields. A
/// required field that is missing is an error at the description's or network's
/// own `where`, with an empty note (a caller that knows the catalogue adds the
/// nearest name). A `network` with a kind defines the network anew, or adds it
/// as the slowest.
MachineOr<Machine> buildMachine(const HardwareDescription &description,
                                const Machine *base);

/// Turns the machine's calibration on, with the figures that it lacks from
/// `relative` (may be null): those of the chip, and of networks those of the
/// one in the same place. False if that leaves no figure at all.
bool calibrate(Machine &machine, const Machine *relative);

/// Gives the machine a shape (docs/Language.md#3-machine-and-mesh): empty is
/// one chip; checks the number of extents, positivity, and the catalogue's
/// limits (with the shape that was probably meant).
MachineOr<Machine> withShape(Machine machine, llvm::ArrayRef<int64_t> shape,
                             unsigned where);

/// One level of the physical machine that mesh axes are bound to: a torus axis
/// or a switched level, outermost first.
struct PhysicalAxis {
  std::string name; // "x", "gpu", "node", "slice"
  int64_t size = 1;
  unsigned network = 0; // index into Machine::networks
};

llvm::SmallVector<PhysicalAxis, 4> physicalAxes(const Machine &machine);

/// True if the physical axis (index into physicalAxes()) is an axis of a torus
/// that wraps around at the machine's shape.
bool wraps(const Machine &machine, unsigned physical);

/// A part of one physical axis: `size` positions `stride` apart.
struct AxisPart {
  unsigned physical = 0; // index into physicalAxes()
  int64_t size = 1;
  int64_t stride = 1;
  bool operator==(const AxisPart &other) const = default;
};

/// Where each mesh axis lies, parts outermost first.
struct MeshBinding {
  llvm::SmallVector<llvm::SmallVector<AxisPart, 2>, 4> parts;
  /// Chips of the machine that the mesh leaves idle.
  int64_t idleChips = 0;
};

/// The `on` of one mesh axis: names of physical axes, or none.
struct AxisRequest {
  llvm::SmallVector<std::string, 2> on;
  unsigned where = 0;
};

/// Binds mesh axes as requested or by default
/// (docs/Language.md#3-machine-and-mesh): to whole physical axes in order where
/// the sizes allow, otherwise row-major, the last mesh axis innermost.
/// `requests` has one entry per mesh axis.
MachineOr<MeshBinding> bindMesh(const Machine &machine, const Mesh &mesh,
                                llvm::ArrayRef<AxisRequest> requests,
                                unsigned where);

} // namespace shardc

#endif // SHARDC_MACHINE_MACHINE_H
