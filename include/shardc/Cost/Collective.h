//===- Collective.h - Time of collectives on real networks ----*- C++ -*-===//
//
// The roofline of each collective on tori and switched levels:
// docs/CostModel.md#4-collectives, How to Scale Your Model chapters 2, 3 and
// 12.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_COST_COLLECTIVE_H
#define SHARDC_COST_COLLECTIVE_H

#include "shardc/Machine/Machine.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <limits>

namespace shardc {

/// The six collectives, in the order that breaks ties between equally cheap
/// sequences (docs/CostModel.md#3-shardings), transfers to the host and back,
/// which move a device's own part (docs/Training.md#offloading), and the
/// exchange of rows at the borders of parts and the sum of what comes back,
/// which no sequence has (docs/CostModel.md#halos).
enum class CollectiveKind : uint8_t {
  AllGather,
  AllSlice,
  AllToAll,
  ReduceScatter,
  AllReduce,
  CollectivePermute,
  ToHost,
  FromHost,
  HaloExchange,
  HaloReduce,
};

inline bool isOfHalo(CollectiveKind kind) {
  return kind == CollectiveKind::HaloExchange ||
         kind == CollectiveKind::HaloReduce;
}
inline bool isHostTransfer(CollectiveKind kind) {
  return kind == CollectiveKind::ToHost || kind == CollectiveKind::FromHost;
}

/// `all_gather`, ... as printed everywhere.
llvm::StringRef stringify(CollectiveKind kind);

/// Integer picoseconds, the unit in which costs are added and compared. Rounded
/// to the nearest, at most 2^60 (13 days), which no plan may take.
using Picoseconds = int64_t;
Picoseconds toPicoseconds(double seconds);

/// A set of physical axes (index into physicalAxes()), one bit per axis.
using PhysicalSet = uint64_t;
inline PhysicalSet physicalBit(unsigned axis) { return PhysicalSet(1) << axis; }

/// Terms of a calibrated time, which add up
/// (docs/CostModel.md#9-calibrated-times).
struct CalibratedCollective {
  /// The network's base and its latency.
  double fixedSeconds = 0;
  double bandwidthSeconds = 0;
  /// In proportion to the square root of the bytes.
  double rampSeconds = 0;

  double seconds() const {
    return fixedSeconds + bandwidthSeconds + rampSeconds;
  }
};

struct CollectiveCost {
  /// V of docs/CostModel.md#4-collectives.
  double bytes = 0;
  /// Sent by one device.
  double wireBytes = 0;
  double bandwidthSeconds = 0;
  double latencySeconds = 0;
  /// Physical axes (index into physicalAxes()) whose network it occupies.
  llvm::SmallVector<unsigned, 4> occupies;
  /// The network that sets the bandwidth term, and the one with the largest
  /// share of the latency: one level, or axes of a torus that work together.
  PhysicalSet slowest = 0, longest = 0;

  /// On a calibrated machine.
  std::optional<CalibratedCollective> calibrated = std::nullopt;

  double rooflineSeconds() const {
    return std::max(bandwidthSeconds, latencySeconds);
  }
  double seconds() const {
    return calibrated ? calibrated->seconds() : rooflineSeconds();
  }
  bool latencyBound() const {
    return calibrated ? 2 * calibrated->fixedSeconds > calibrated->seconds()
                      : latencySeconds > bandwidthSeconds;
  }
  /// The same collective on `factor` times the bytes.
  CollectiveCost timesBytes(double factor) const;
  /// The network that sets the time.
  PhysicalSet boundBy() const { return latencyBound() ? longest : slowest; }
};

/// Prices collectives of one mesh bound to one machine. Immutable and pure, so
/// that threads may share one.
class CollectiveModel {
public:
  CollectiveModel(Machine machine, Mesh mesh, MeshBinding binding);

  /// Prices each collective as under that of several bindings where it takes
  /// least, and permutes by what one device sends at least: no plan costs less
  /// under any of them. What networks are occupied is not known.
  static CollectiveModel optimistic(Machine machine, Mesh mesh,
                                    llvm::ArrayRef<MeshBinding> bindings);
  bool isOptimistic() const { return isRelaxed; }

  const Mesh &mesh() const { return theMesh; }
  const Machine &machine() const { return theMachine; }
  const MeshBinding &binding() const { return theBinding; }
  llvm::ArrayRef<PhysicalAxis> physical() const { return thePhysical; }

  /// Networks that a collective may occupy: one for each physical axis, and the
  /// link to the host, out and in, where the machine has one.
  unsigned numNetworks() const {
    return thePhysical.size() + (theMachine.hostBandwidth ? 2 : 0);
  }
  llvm::StringRef networkName(unsigned network) const;
  /// A transfer of a device's own part over its share of the link to the host.
  CollectiveCost hostCost(CollectiveKind kind, double localBytes) const;

  /// Whether the devices of a mesh axis are all of a ring of a torus, so that
  /// what goes one way around it and what goes the other way take links of
  /// their own. Two devices have no two ways. Of several bindings: under any of
  /// them.
  bool hasTwoWays(AxisIndex axis) const;

  /// Bytes/s that one device can send over a physical axis: both ways along a
  /// ring of a torus.
  double bandwidth(unsigned physical) const;

  /// all_gather, reduce_scatter, all_reduce, all_to_all over all of `axes`
  /// together; `bytes` is V. Groups of one cost nothing. all_slice is free.
  CollectiveCost cost(CollectiveKind kind, llvm::ArrayRef<AxisIndex> axes,
                      double bytes) const;

  /// The all_to_all over `axes` of slots of experts whose tokens keep to few
  /// blocks of them; `experts` are the axes of the experts' index on the side
  /// that has more. Where the devices below one member of a level have whole
  /// blocks, a token crosses that level once for each member that needs it.
  CollectiveCost slotsCost(llvm::ArrayRef<AxisIndex> axes, double bytes,
                           llvm::ArrayRef<AxisIndex> experts,
                           const RoutedBlocks &blocks) const;

  /// Turns the mesh coordinates of a device, which `source` holds too, into
  /// those of the device whose part it receives; itself: it receives none.
  using PermuteSource =
      llvm::function_ref<void(llvm::ArrayRef<int64_t> destination,
                              llvm::MutableArrayRef<int64_t> source)>;

  /// A permutation of the devices' parts: the device at mesh coordinates c
  /// receives the part that the device at `source(c)` holds; `localBytes` is
  /// that part. `axes` are the mesh axes along which coordinates change; where
  /// the part comes from along them depends on the coordinates along them only.
  /// Priced by the most loaded directed link under dimension-ordered shortest
  /// paths; half way round a ring goes upwards.
  CollectiveCost permuteCost(llvm::ArrayRef<AxisIndex> axes, double localBytes,
                             PermuteSource source) const;
  /// Several permutations at once; `localBytes` is what each of them moves.
  CollectiveCost permuteCost(llvm::ArrayRef<AxisIndex> axes, double localBytes,
                             llvm::ArrayRef<PermuteSource> sources) const;

private:
  friend class PermuteRouter;

  /// One network at the machine's shape.
  struct Level {
    Network::Kind kind = Network::Kind::Switch;
    unsigned network = 0;
    /// Its axes (index into physicalAxes()).
    unsigned firstPhysical = 0;
    unsigned numPhysical = 1;
    /// Share of one device, bytes/s: of one torus link in one direction; else
    /// w_i of docs/CostModel.md#4-collectives (of a full mesh, over all its
    /// links).
    double rate = 0;
    /// Links of one member of a full mesh.
    int64_t meshLinks = 1;
    double latency = 0;
    bool inNetworkReduction = false;
    llvm::SmallVector<bool, 3> wraps;
    /// What it reaches, on a calibrated machine: `reached` times the rate, with
    /// a base, a latency of each step, a ramp, and from `reductionMin` members
    /// on reduction in the network.
    double base = 0, stepLatency = 0, reached = 1, ramp = 0;
    double reductionMin = std::numeric_limits<double>::infinity();
  };

  /// Cost of a group's collectives: per byte of V, and the latency floor.
  struct GroupTerms {
    /// A term, and the network that sets it.
    struct Term {
      double value = 0;
      PhysicalSet network = 0;

      /// The slower of this and another network.
      void include(double other, PhysicalSet otherNetwork) {
        if (other > value)
          *this = {other, otherNetwork};
      }
    };
    /// An all_to_all on one level: seconds per byte, and on a calibrated
    /// machine.
    struct Exchange : Term {
      unsigned level = 0;
      /// The group's devices below one member of the level.
      int64_t below = 1;
      double reached = 0;
    };
    int64_t members = 1;
    /// Innermost level first.
    llvm::SmallVector<Exchange, 3> exchanges;
    /// Seconds per byte.
    Term gather, allReduce, allToAll;
    /// Seconds of one pass: of all levels, and of the longest among them.
    double latency = 0;
    Term longest;
    llvm::SmallVector<unsigned, 4> occupies;
    /// On a calibrated machine: seconds per byte, of any collective (the
    /// largest base, and latencies), and per square root of a byte.
    double reachedGather = 0, reachedAllReduce = 0, reachedAllToAll = 0;
    double base = 0, steps = 0, ramp = 0;

    void takeLeast(const GroupTerms &other);
  };

  /// What one level adds to the terms of a group.
  struct LevelTerms {
    double gather = 0, allReduce = 0, allToAll = 0;
    /// All-reduces where the level adds in the network once calibrated.
    double reachedAllReduce = 0;
    /// Hops or doublings, each of which takes a latency.
    double steps = 0;
  };

  /// The part of one physical axis that a group takes, all its parts together.
  struct AxisUnion {
    int64_t members = 1;
    /// Positions from the first member to the one after the last.
    int64_t span = 1;
    /// From the first member to the last.
    int64_t reach = 0;
    /// Groups that share the links of the span.
    double sharing() const { return static_cast<double>(span) / members; }
  };

  Level makeLevel(unsigned network, double rate) const;
  static void addReached(const Level &level, const LevelTerms &own,
                         GroupTerms &terms);
  static void addExchange(const Level &level, const GroupTerms::Term &own,
                          GroupTerms &terms);
  AxisUnion axisUnion(AxisSet axes, unsigned physicalAxis) const;
  void addTorus(const Level &level, AxisSet axes, int64_t below,
                GroupTerms &terms) const;
  void addSwitch(const Level &level, AxisSet axes, int64_t below,
                 GroupTerms &terms) const;
  /// The group's members along one level.
  int64_t levelMembers(const Level &level, AxisSet axes) const;
  /// Appends the switched levels that traffic across `outermost` occupies.
  void occupySwitches(unsigned outermost,
                      llvm::SmallVectorImpl<unsigned> &occupies) const;
  GroupTerms groupTerms(AxisSet axes) const;
  /// groupTerms, looked up where they are listed, else in `computed`.
  const GroupTerms &termsOf(AxisSet axes,
                            std::optional<GroupTerms> &computed) const;
  /// The number of the level of a physical axis, 0 the innermost.
  unsigned levelOf(unsigned physical) const;
  bool haveWholeBlocks(unsigned level, AxisSet group,
                       llvm::ArrayRef<AxisIndex> experts, int64_t blocks) const;

  Machine theMachine;
  Mesh theMesh;
  MeshBinding theBinding;
  llvm::SmallVector<PhysicalAxis, 4> thePhysical;
  /// Fastest first.
  llvm::SmallVector<Level, 3> levels;
  /// By axis set; empty where the mesh has too many axes to list them.
  std::vector<GroupTerms> groups;
  bool isRelaxed = false;
};

} // namespace shardc

#endif // SHARDC_COST_COLLECTIVE_H
