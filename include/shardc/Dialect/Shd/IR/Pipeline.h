//===- Pipeline.h - Facts of programs that run in stages ------*- C++ -*-===//

#ifndef SHARDC_DIALECT_SHD_IR_PIPELINE_H
#define SHARDC_DIALECT_SHD_IR_PIPELINE_H

#include "shardc/Cost/PipelineSchedule.h"
#include "shardc/Dialect/Shd/IR/Shd.h"

namespace shardc::shd {

/// The stages of a program with a pipeline: the size of its axis. Nothing if
/// the mesh lacks it.
std::optional<int64_t> numStages(ProgramOp program);

/// The order that the program asks for; nothing if the compiler chooses.
std::optional<PipelineOrder> writtenOrder(PipelineAttr pipeline);

/// On a program of inference: the microbatches that its pipeline splits the
/// batch into; without, the compiler chooses.
inline constexpr llvm::StringLiteral kMicrobatches = "shd.microbatches";

/// On a program: the location of the text that gives its number of
/// microbatches, for errors of shd-microbatch, which removes it.
inline constexpr llvm::StringLiteral kMicrobatchesAt = "shd.microbatches_at";

/// The index of the repeat over microbatches.
inline constexpr llvm::StringLiteral kMicrobatchIndex = "microbatch";

/// How many microbatches the program asks for, in its `train` block or on the
/// repeat of its pipeline; 0: the compiler chooses.
int64_t writtenMicrobatches(ProgramOp program);

/// On a program: all chunks of its stages have as many layers.
inline constexpr llvm::StringLiteral kEqualLayers = "shd.equal_layers";

/// The part of an operation's runs in which it reads the value: the first of m
/// microbatches finds nothing in the buffers of gradients, so that they are
/// read in (m - 1) / m of the runs.
double shareOfReads(mlir::Value value);

/// Sets the number of microbatches of a program that is not trained.
void setMicrobatches(ProgramOp program, int64_t microbatches);

/// True for a pipeline that is not trained: its stages run forward passes.
bool isInferencePipeline(ProgramOp program);

/// The dimension, of the first `stacked` ones, that the layers' index has.
std::optional<unsigned> layersDim(mlir::ArrayAttr indices, int64_t stacked,
                                  llvm::StringRef index);

/// True if a declared tensor has a part for each layer.
bool isStackedOverLayers(DeclareOp declare, PipelineAttr pipeline);

/// The repeats of a program of stages: over microbatches, and in it those over
/// layers. Null where the program lacks them.
struct PipelineRepeats {
  RepeatOp microbatches, forward, backward;
};
PipelineRepeats pipelineRepeats(mlir::Operation *program,
                                llvm::StringRef index);

/// Sets the number of layers of a program in which a stage has everything.
void holdLayers(ProgramOp program, int64_t layers);

/// Sets the number of stages in the program's mesh.
void holdStages(ProgramOp program, int64_t stages);

/// The stages that `shd.stage` of an operation names; all without it.
StageRoles markedRoles(mlir::Operation *op);

/// True if each stage has but a summand of the value, as `shd.stage` says.
bool isMarkedPartial(mlir::Operation *op);
bool isMarkedPartial(mlir::Value value);

/// The stage whose summand a value is, if several have it.
StageRoles ownerOf(mlir::Value value);

/// True for the operations of layers.
bool isInLayers(mlir::Operation *op, PipelineAttr pipeline);

/// Runs of an operation in a step, all stages together: of one of the layers as
/// many as there are layers, and not as a stage holds.
double runsOfAllStages(mlir::Operation *op);

/// How many microbatches the first stage, which keeps most, has in flight in
/// the written order, or else in 1F1B.
int64_t keptByFirstStage(PipelineAttr pipeline, int64_t stages,
                         int64_t microbatches);

} // namespace shardc::shd

#endif // SHARDC_DIALECT_SHD_IR_PIPELINE_H
