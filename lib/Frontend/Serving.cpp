//===- Serving.cpp - The serve block --------------------------------------===//
//
// What a program's `serve` block says
// (docs/Language.md#12-training-and-serving). Fields are independent: each
// error is reported.
//
//===----------------------------------------------------------------------===//

#include "Serving.h"
#include "Names.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace shardc;

namespace {
/// Reads the fields of a serve block.
class ServeReader {
public:
  ServeReader(SourceFiles &files, const ast::ServeBlock &block, DimScope &dims)
      : files(files), block(block), dims(dims) {}

  std::optional<shd::Serving> read();

private:
  void readField(const ast::Setting &setting);
  void readIndex(const ast::SettingValue &value, std::string &name);
  void readPosition(const ast::SettingValue &value);
  void readCount(llvm::StringRef name, const ast::SettingValue &value,
                 int64_t &count);
  void readSeparate(const ast::SettingValue &value);
  void checkMachines();
  void checkComplete();
  void checkIndices();
  void checkCache();
  /// The value of a field; null if it is not given.
  const ast::SettingValue *valueOf(llvm::StringRef name) const;

  SourceFiles &files;
  const ast::ServeBlock &block;
  DimScope &dims;
  shd::Serving serving;
  llvm::StringMap<const ast::Setting *> seen;
};
} // namespace

static constexpr llvm::StringLiteral kFields[] = {
    "batch",  "sequence", "context",      "position",
    "prompt", "generate", "prompt_batch", "separate"};
/// The first of them have no default.
static constexpr size_t kNeeded = 6;

const ast::SettingValue *ServeReader::valueOf(llvm::StringRef name) const {
  const ast::Setting *setting = seen.lookup(name);
  return setting ? &setting->values.front() : nullptr;
}

void ServeReader::readIndex(const ast::SettingValue &value, std::string &name) {
  if (value.number && value.number->kind == ast::DimExpr::Kind::Name &&
      dims.has(value.text)) {
    name = value.text;
    return;
  }
  auto diag = files.error(value.range)
              << "expected the name of a dim, found '" << value.text << "'";
}

void ServeReader::readPosition(const ast::SettingValue &value) {
  if (value.number && value.number->kind == ast::DimExpr::Kind::Name)
    serving.position = value.text;
  else
    files.error(value.range)
        << "expected the name of an input, found '" << value.text << "'";
}

void ServeReader::readCount(llvm::StringRef name,
                            const ast::SettingValue &value, int64_t &count) {
  if (!value.number) {
    files.error(value.range) << "expected a number for `" << name
                             << "`, found '" << value.text << "'";
    return;
  }
  std::optional<int64_t> read = dims.evaluate(*value.number);
  if (!read)
    return;
  if (*read < 1 || *read > (int64_t(1) << 40))
    files.error(value.range)
        << "expected from 1 to 2^40 for `" << name << "`, found " << *read;
  else
    count = *read;
}

void ServeReader::readSeparate(const ast::SettingValue &value) {
  if (value.text == "true" || value.text == "false")
    serving.separate = value.text == "true";
  else
    files.error(value.range) << "expected true or false for `separate`, found '"
                             << value.text << "'";
}

void ServeReader::readField(const ast::Setting &setting) {
  llvm::StringRef name = setting.name.text;
  if (!llvm::is_contained(kFields, name)) {
    auto diag = files.error(setting.name.range)
                << "a serve block has no field '" << name << "'";
    llvm::SmallVector<llvm::StringRef> known(std::begin(kFields),
                                             std::end(kFields));
    if (auto near = likelyName(name, known))
      diag.attachNote() << "did you mean '" << *near << "'?";
    return;
  }
  auto [it, isNew] = seen.try_emplace(name, &setting);
  if (!isNew) {
    auto diag = files.error(setting.name.range)
                << "'" << name << "' is set twice in the serve block";
    diag.attachNote(files.location(it->second->name.range)) << "first here";
    return;
  }
  const ast::SettingValue &value = setting.values.front();
  if (name == "batch")
    readIndex(value, serving.batch);
  else if (name == "sequence")
    readIndex(value, serving.sequence);
  else if (name == "context")
    readIndex(value, serving.context);
  else if (name == "position")
    readPosition(value);
  else if (name == "prompt")
    readCount(name, value, serving.prompt);
  else if (name == "generate")
    readCount(name, value, serving.generate);
  else if (name == "prompt_batch")
    readCount(name, value, serving.promptBatch);
  else
    readSeparate(value);
}

/// One machine for each phase, where the phases have machines of their own.
void ServeReader::checkMachines() {
  llvm::StringMap<const ast::PhaseMachine *> known;
  for (const ast::PhaseMachine &machine : block.machines) {
    llvm::StringRef phase = machine.phase.text;
    if (phase != shd::stringify(shd::ServingPhase::Prefill) &&
        phase != shd::stringify(shd::ServingPhase::Decode)) {
      files.error(machine.phase.range)
          << "expected `prefill on` or `decode on`, found '" << phase << "'";
      continue;
    }
    auto [it, isNew] = known.try_emplace(phase, &machine);
    if (!isNew) {
      auto diag = files.error(machine.range)
                  << "`" << phase << "` has two machines";
      diag.attachNote(files.location(it->second->range)) << "first here";
    }
  }
  if (block.machines.empty() || serving.separate)
    return;
  auto diag = files.error(block.machines.front().range)
              << "`" << block.machines.front().phase.text
              << " on` needs `separate = true`";
  diag.attachNote() << "without it, both phases run on the same machine";
}

void ServeReader::checkComplete() {
  llvm::SmallVector<std::string> missing;
  for (llvm::StringRef name : llvm::ArrayRef(kFields).take_front(kNeeded))
    if (!seen.count(name))
      missing.push_back(("`" + name + "`").str());
  if (missing.empty())
    return;
  auto diag = files.error(block.range)
              << "a serve block needs " << llvm::join(missing, ", ");
  diag.attachNote() << "as in `serve { batch = B  sequence = T  context = S  "
                       "position = pos  prompt = 8192  generate = 1024 }`";
}

void ServeReader::checkIndices() {
  std::pair<llvm::StringRef, llvm::StringRef> indices[] = {
      {"batch", serving.batch},
      {"sequence", serving.sequence},
      {"context", serving.context}};
  for (size_t i = 0; i < std::size(indices); ++i)
    for (size_t j = 0; j < i; ++j)
      if (!indices[i].second.empty() && indices[i].second == indices[j].second)
        files.error(valueOf(indices[i].first)->range)
            << "`" << indices[j].first << "` and `" << indices[i].first
            << "` are the same index '" << indices[i].second << "'";
}

/// A sequence's prompt and what it generates stand in its cache.
void ServeReader::checkCache() {
  const ast::SettingValue *batch = valueOf("batch"),
                          *context = valueOf("context");
  std::optional<int64_t> sequences = dims.extent(serving.batch, batch->range);
  std::optional<int64_t> capacity =
      dims.extent(serving.context, context->range);
  if (!sequences || !capacity)
    return;
  serving.sequences = *sequences;
  serving.capacity = *capacity;
  if (serving.promptBatch > *sequences && !serving.separate)
    files.error(valueOf("prompt_batch")->range)
        << "a prefill of " << serving.promptBatch
        << " prompts has no room in the caches of " << *sequences
        << " sequences, the extent of '" << serving.batch << "'";
  if (serving.prompt + serving.generate <= *capacity)
    return;
  auto diag = files.error(valueOf("prompt")->range)
              << "a prompt of " << serving.prompt << " tokens and "
              << serving.generate << " generated ones do not fit in a cache of "
              << *capacity << " positions";
  diag.attachNote(files.location(dims.definition(serving.context)))
      << "'" << serving.context << "' is the cache's length";
}

std::optional<shd::Serving> ServeReader::read() {
  unsigned before = files.numErrors();
  for (const ast::Setting &setting : block.settings)
    readField(setting);
  checkMachines();
  checkComplete();
  checkIndices();
  if (files.numErrors() == before)
    checkCache();
  if (files.numErrors() != before)
    return std::nullopt;
  return serving;
}

std::optional<shd::Serving> shardc::readServeBlock(SourceFiles &files,
                                                   const ast::ServeBlock &block,
                                                   DimScope &dims) {
  return ServeReader(files, block, dims).read();
}

/// `int32[B, T]`.
static std::string shapeText(shd::DeclareOp declare) {
  llvm::SmallVector<llvm::StringRef> names(
      declare.getIndices().getAsValueRange<mlir::StringAttr>());
  mlir::Type element =
      mlir::cast<mlir::RankedTensorType>(declare.getType()).getElementType();
  return (shd::typeName(element) + "[" + llvm::join(names, ", ") + "]").str();
}

/// The input of positions has one for each token of each sequence.
static void checkPositions(SourceFiles &files, llvm::SMRange where,
                           const shd::Serving &serving,
                           shd::ProgramOp program) {
  llvm::SmallVector<llvm::StringRef> inputs;
  std::string expected = "an input of integers with the indices [" +
                         serving.batch + ", " + serving.sequence + "]";
  for (auto declare : program.getBody().getOps<shd::DeclareOp>()) {
    if (declare.getKind() != shd::TensorKind::Input)
      continue;
    inputs.push_back(declare.getSym());
    if (declare.getSym() != serving.position)
      continue;
    llvm::SmallVector<llvm::StringRef> names(
        declare.getIndices().getAsValueRange<mlir::StringAttr>());
    auto type = mlir::cast<mlir::RankedTensorType>(declare.getType());
    bool isRight = names == llvm::ArrayRef<llvm::StringRef>{serving.batch,
                                                            serving.sequence} &&
                   type.getElementType().isInteger() &&
                   !type.getElementType().isInteger(1);
    if (isRight)
      return;
    auto diag = files.error(where)
                << "expected " << expected << ", found '" << serving.position
                << "' of " << shapeText(declare);
    diag.attachNote(declare.getLoc()) << "declared here";
    return;
  }
  auto diag = files.error(where) << "no input is called '" << serving.position
                                 << "'; expected " << expected;
  if (auto near = likelyName(serving.position, inputs))
    diag.attachNote() << "did you mean '" << *near << "'?";
}

/// Adds the input behind each position to `found`: what `value` is made of, by
/// arithmetic and by lookups.
static void inputsBehind(mlir::Value value,
                         llvm::SetVector<mlir::Operation *> &seen,
                         llvm::SetVector<shd::DeclareOp> &found) {
  mlir::Operation *maker = value.getDefiningOp();
  if (!maker || !seen.insert(maker))
    return;
  if (auto declare = llvm::dyn_cast<shd::DeclareOp>(maker);
      declare && declare.getKind() == shd::TensorKind::Input)
    found.insert(declare);
  for (mlir::Value operand : maker->getOperands())
    inputsBehind(operand, seen, found);
}

/// True if the scatter writes positions of a cache.
static bool writesCache(shd::ScatterOp op, llvm::StringRef context) {
  return op.getDims().size() == 1 &&
         op.getIndexing().getOperandIndices(0)[op.getDims()[0]] == context;
}

/// Where caches are written and read at positions of another input, prefill
/// would count the wrong one.
static void checkUseOfPositions(SourceFiles &files, llvm::SMRange where,
                                const shd::Serving &serving,
                                shd::ProgramOp program) {
  llvm::SetVector<mlir::Operation *> seen;
  llvm::SetVector<shd::DeclareOp> ofCaches, all;
  program->walk([&](mlir::Operation *op) {
    mlir::ValueRange positions;
    if (auto scatter = llvm::dyn_cast<shd::ScatterOp>(op)) {
      positions = scatter.getPositions();
      if (writesCache(scatter, serving.context))
        for (mlir::Value position : positions) {
          llvm::SetVector<mlir::Operation *> own;
          inputsBehind(position, own, ofCaches);
        }
    } else if (auto attention = llvm::dyn_cast<shd::AttentionOp>(op)) {
      if (attention.getAt())
        positions = attention.getAtMutable().getAsOperandRange();
    } else if (auto rope = llvm::dyn_cast<shd::RopeOp>(op)) {
      if (rope.getAt())
        positions = rope.getAtMutable().getAsOperandRange();
    }
    for (mlir::Value position : positions)
      inputsBehind(position, seen, all);
  });
  if (ofCaches.empty() || llvm::any_of(all, [&](shd::DeclareOp declare) {
        return declare.getSym() == serving.position;
      }))
    return;
  shd::DeclareOp other = ofCaches.front();
  auto diag = files.error(where)
              << "'" << serving.position << "' places nothing: caches are "
              << "written at positions of '" << other.getSym() << "'";
  diag.attachNote(other.getLoc()) << "declared here";
}

/// Prefill and decode differ in the extent of the context, so it is no index of
/// weights alone.
static void checkContext(SourceFiles &files, llvm::SMRange where,
                         const shd::Serving &serving, shd::ProgramOp program) {
  shd::DeclareOp weight;
  for (auto declare : program.getBody().getOps<shd::DeclareOp>()) {
    if (!llvm::is_contained(
            declare.getIndices().getAsValueRange<mlir::StringAttr>(),
            llvm::StringRef(serving.context)))
      continue;
    if (declare.getKind() == shd::TensorKind::State)
      return;
    if (declare.getKind() == shd::TensorKind::Weight && !weight)
      weight = declare;
  }
  if (!weight)
    return;
  auto diag = files.error(where)
              << "no state has the index '" << serving.context
              << "'; expected that of the positions in the caches";
  diag.attachNote(weight.getLoc())
      << "weight '" << weight.getSym() << "' has it";
}

void shardc::markServing(SourceFiles &files, const ast::ServeBlock &block,
                         const shd::Serving &serving,
                         std::optional<shd::ServingPhase> phase,
                         shd::ProgramOp program) {
  auto rangeOf = [&](llvm::StringRef name) {
    auto setting =
        llvm::find_if(block.settings, [&](const ast::Setting &setting) {
          return setting.name.text == name;
        });
    return setting == block.settings.end() ? block.range
                                           : setting->values.front().range;
  };
  checkPositions(files, rangeOf("position"), serving, program);
  if (!files.hadError())
    checkUseOfPositions(files, rangeOf("position"), serving, program);
  checkContext(files, rangeOf("context"), serving, program);
  bool hasState = llvm::any_of(
      program.getBody().getOps<shd::DeclareOp>(), [](shd::DeclareOp declare) {
        return declare.getKind() == shd::TensorKind::State;
      });
  if (!hasState)
    files.error(block.range) << "the program has no state in which prefill "
                                "could leave what decode reads";
  mlir::MLIRContext *context = program.getContext();
  program->setAttr(shd::kServing, serving.toAttr(context));
  if (phase)
    program->setAttr(shd::kServingPhase,
                     mlir::StringAttr::get(context, shd::stringify(*phase)));
}
