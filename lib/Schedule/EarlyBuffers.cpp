//===- EarlyBuffers.cpp - What a schedule makes early ---------------------===//
//
// From where collectives are issued to the moments at which what they make
// takes memory.
//
//===----------------------------------------------------------------------===//

#include "MemoryProfiler.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

namespace {

/// Moments [first, second) of an operation's group or of a block.
using Moments = std::pair<uint32_t, uint32_t>;

Moments momentsOf(const Graph &graph, Operation *op) {
  if (isa<RepeatOp>(op)) {
    auto [entry, exit] = graph.repeatPoints.lookup(op);
    return {entry, exit + kMomentsPerPoint};
  }
  uint32_t point = graph.chunks[graph.chunkOf.lookup(op)].point;
  return {point, point + kMomentsPerPoint};
}

/// Moments of one iteration of a repeat, without its end.
Moments momentsIn(const Graph &graph, Block *block) {
  auto repeat = dyn_cast<RepeatOp>(block->getParentOp());
  if (!repeat)
    return {0, graph.numPoints};
  auto [entry, exit] = graph.repeatPoints.lookup(repeat);
  return {entry + kMomentsPerPoint, exit};
}

/// When a collective is issued that may run beside `issue.after`: a repeat lets
/// it when its last iteration ends.
uint32_t momentOfIssue(const Graph &graph, const EarlyIssue &issue) {
  auto [begin, end] = momentsOf(graph, issue.after);
  if (!issue.during)
    return end;
  return isa<RepeatOp>(issue.after) ? end - 1 : begin;
}

void addEarly(const Graph &graph, const EarlyIssue &issue,
              EarlyBuffer &buffer) {
  auto [blockBegin, blockEnd] = momentsIn(graph, issue.block);
  EarlyBuffer::Begin begin = {blockBegin};
  if (issue.after)
    begin.moment = momentOfIssue(graph, issue);
  if (issue.next) {
    // At the end of the iteration it is there beside what that hands on; the
    // last iteration makes none.
    if (cast<RepeatOp>(issue.block->getParentOp()).getCount() > 1)
      buffer.also.push_back({begin, blockEnd + 1});
    begin = {blockBegin, /*isOlder=*/true};
  }
  Operation *at = issue.block->findAncestorOpInBlock(*issue.collective);
  if (at == issue.collective)
    buffer.from.include(begin);
  else // For the first iteration of this repeat.
    buffer.also.push_back(
        {begin, momentsOf(graph, at).first + kMomentsPerPoint});
}

} // namespace

EarlyBuffers shardc::earlyBuffers(const Graph &graph,
                                  const RunSchedule &schedule) {
  EarlyBuffers buffers;
  for (const EarlyIssue &issue : schedule)
    if (!issue.blocks)
      addEarly(graph, issue, buffers[issue.collective]);
  return buffers;
}
