//===- IndexClasses.cpp - Batch, sequences and the rest -------------------===//

#include "shardc/Optimizer/IndexClasses.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

IndexClasses::IndexClasses(ProgramOp program) {
  StringAttr named;
  if (std::optional<TrainingAttr> training = program.getTraining())
    named = training->getBatch();
  for (auto input : program.getBody().getOps<DeclareOp>()) {
    if (input.getKind() != TensorKind::Input)
      continue;
    bool isInteger = isa<IntegerType>(input.getType().getElementType());
    for (auto [i, name] :
         llvm::enumerate(input.getIndices().getAsValueRange<StringAttr>()))
      if (named ? name == named.getValue() : i == 0)
        batch.insert(name);
      else if (isInteger)
        sequence.insert(name);
  }
  auto addSequence = [&](StringRef name) {
    if (!batch.contains(name))
      sequence.insert(name);
  };
  program->walk([&](AttentionOp op) {
    addSequence(op.getKey());
    if (std::optional<StringRef> query = op.getQuery())
      addSequence(*query);
    else if (std::optional<RingRule> ring = op.getShardingRule().ring)
      for (unsigned factor : ring->along)
        addSequence(op.getShardingRule().factors[factor].name);
  });
}

int64_t IndexClasses::sequenceLength(ProgramOp program) const {
  for (auto input : program.getBody().getOps<DeclareOp>()) {
    if (input.getKind() != TensorKind::Input)
      continue;
    for (auto [name, extent] :
         llvm::zip_equal(input.getIndices().getAsValueRange<StringAttr>(),
                         input.getType().getShape()))
      if (sequence.contains(name))
        return extent;
  }
  return 1;
}
