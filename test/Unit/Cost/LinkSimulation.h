//===- LinkSimulation.h - Collectives, link by link -----------*- C++ -*-===//
//
// Runs collectives on a torus chunk by chunk and counts what every directed
// link carries. Shares nothing with lib/Cost.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TEST_UNIT_COST_LINKSIMULATION_H
#define SHARDC_TEST_UNIT_COST_LINKSIMULATION_H

#include <cstdint>
#include <vector>

namespace shardc::test {

/// A torus some of whose axes are rings and the others lines. Every chip takes
/// part in every collective, with one unit of bytes as its shard.
class LinkSimulation {
public:
  struct Axis {
    int64_t size;
    bool isRing;
  };
  /// On a ring of even size a chunk reaches the opposite chip from both sides:
  /// half from each, or whole from each as in the book's count of N / 2 hops.
  enum class Opposite { Halves, Whole };

  explicit LinkSimulation(std::vector<Axis> axes);

  /// Every chip gets every shard. A part of each shard, `fraction`, goes along
  /// the axes in `order`; parts add up, and run at the same time.
  void allGather(const std::vector<unsigned> &order, double fraction,
                 Opposite opposite);
  /// Every chip starts with a shard for each chip and ends with the sum of
  /// those for itself.
  void reduceScatter(const std::vector<unsigned> &order, double fraction,
                     Opposite opposite);
  /// Every chip sends one unit of bytes to each chip, on shortest paths, axis
  /// after axis; half each way where both are equally short.
  void allToAll();

  /// True if what ran has delivered all of every shard.
  bool isComplete() const;
  /// Units on the most loaded link of all, and of one axis.
  double busiest() const;
  double busiest(unsigned axis) const;
  /// Steps of one hop that the longest part took.
  int64_t steps() const { return longest; }

private:
  using Coordinates = std::vector<int64_t>;
  /// [chip][shard]: how much of it the chip has.
  using Shares = std::vector<std::vector<double>>;

  int64_t numChips() const { return chips; }
  int64_t coordinate(int64_t chip, unsigned axis) const;
  /// The next chip along an axis; -1 beyond the end of a line.
  int64_t neighbour(int64_t chip, unsigned axis, bool up) const;
  double &load(int64_t chip, unsigned axis, bool up);
  int64_t gatherAlong(unsigned axis, double fraction, Opposite opposite,
                      Shares &shares);
  int64_t scatterAlong(unsigned axis, double fraction, Opposite opposite,
                       Shares &sums);
  /// A message from one chip to another, of which some part is at `at` and has
  /// the axes from `axis` on before it.
  struct Message {
    int64_t from, to;
    double amount;
  };
  void send(const Message &message, int64_t at, unsigned axis);
  void walk(const Message &message, int64_t at, unsigned axis, bool up);

  std::vector<Axis> axes;
  int64_t chips = 1;
  /// Units by chip, axis and direction.
  std::vector<double> loads;
  /// Shares that arrived at their destination: [chip][shard].
  Shares delivered;
  int64_t longest = 0;
};

/// All cyclic orders of the axes, and how much of each shard goes along each so
/// that the busiest links of all axes carry alike.
struct BalancedOrders {
  std::vector<std::vector<unsigned>> orders;
  std::vector<double> fractions;
};
BalancedOrders balancedOrders(const std::vector<LinkSimulation::Axis> &axes);

} // namespace shardc::test

#endif // SHARDC_TEST_UNIT_COST_LINKSIMULATION_H
