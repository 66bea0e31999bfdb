//===- EarlyBuffers.cpp - What a schedule makes early ---------------------===//
//
// From where collectives are issued to the program points at which what they
// make takes memory.
//
//===----------------------------------------------------------------------===//

#include "MemoryProfiler.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

namespace {

/// Program points [first, second) of an operation's group or of a block.
using PointRange = std::pair<uint32_t, uint32_t>;

PointRange pointsOf(const Graph &graph, Operation *op) {
  if (isa<RepeatOp>(op)) {
    auto [entry, exit] = graph.repeatPoints.lookup(op);
    return {entry, exit + 1};
  }
  uint32_t point = graph.chunks[graph.chunkOf.lookup(op)].point;
  return {point, point + 1};
}

PointRange pointsIn(const Graph &graph, Block *block) {
  auto repeat = dyn_cast<RepeatOp>(block->getParentOp());
  if (!repeat)
    return {0, graph.numPoints};
  auto [entry, exit] = graph.repeatPoints.lookup(repeat);
  return {entry + 1, exit};
}

void addEarly(const Graph &graph, const EarlyIssue &issue,
              EarlyBuffer &buffer) {
  auto [blockBegin, blockEnd] = pointsIn(graph, issue.block);
  uint32_t begin = blockBegin;
  if (issue.after) {
    uint32_t end = pointsOf(graph, issue.after).second;
    begin = issue.during ? end - 1 : end;
  }
  if (issue.next) {
    // At the end of the iteration it is there beside what that hands on.
    if (cast<RepeatOp>(issue.block->getParentOp()).getCount() > 1)
      buffer.also.push_back({begin, blockEnd + 1});
    begin = blockBegin;
  }
  Operation *at = issue.block->findAncestorOpInBlock(*issue.collective);
  if (at == issue.collective)
    buffer.from = std::min(buffer.from, begin);
  else // For the first iteration of this repeat.
    buffer.also.push_back({begin, pointsOf(graph, at).first + 1});
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
