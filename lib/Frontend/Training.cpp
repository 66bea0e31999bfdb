//===- Training.cpp - The train block -------------------------------------===//
//
// What a program's `train` block says, as an attribute of the program
// (docs/Language.md#12-training-and-serving). Fields are independent: each
// error is reported.
//
//===----------------------------------------------------------------------===//

#include "Importer.h"
#include "Remat.h"
#include "Stages.h"
#include "shardc/Cost/PipelineSchedule.h"
#include "shardc/Dialect/Shd/IR/Gradient.h"
#include "shardc/Dialect/Shd/IR/Pipeline.h"
#include "shardc/Frontend/Frontend.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/GlobPattern.h"
#include <cmath>

using namespace shardc;

bool shardc::isAutoBatch(const ast::SettingValue &value, const DimScope &dims) {
  return value.text == "auto" && !dims.has("auto");
}

/// Reads the fields of a train block, the loss and the placings aside.
class shardc::TrainReader {
public:
  TrainReader(SourceFiles &files, DimScope &dims)
      : files(files), dims(dims), context(files.getContext()) {}

  void read(const ast::Setting &setting);
  void save(llvm::StringRef name, mlir::Attribute pin) {
    saved.set(name, pin);
    savesSome = true;
  }
  void saveOnlyNamed() { savesSome = true; }
  /// `save` or `offload` of a value, with a pin or `unit`.
  void keep(const ast::Placing &placing, llvm::StringRef name,
            mlir::Attribute pin) {
    if (placing.what.text == "save")
      return save(name, pin);
    offloaded.set(name, pin);
    offloadRange = placing.what.range;
  }
  void recompute(llvm::StringRef name) {
    recomputed.push_back(mlir::StringAttr::get(context, name));
  }
  /// Finds the weights that `frozen` names.
  void freeze(llvm::ArrayRef<llvm::StringRef> weights);
  /// True if no placing before says the same of a tensor.
  bool isNewPlacing(const ast::Placing &placing, llvm::StringRef tensor);
  /// True of a weight that `frozen` names or a pattern of it matches.
  bool isFrozen(llvm::StringRef weight) const {
    return frozenWeights.contains(weight);
  }
  /// True if the optimizer keeps what the placing is of.
  bool keeps(const ast::Placing &placing, mlir::Type weight);
  void pin(llvm::StringRef what, llvm::StringRef name, shd::ShardingAttr pin) {
    (what == "gradient"  ? gradientPins
     : what == "moments" ? momentPins
                         : masterPins)
        .set(name, pin);
  }
  shd::TrainingAttr take(llvm::StringRef loss);
  /// Gives the pipeline its schedule.
  void takeSchedule(shd::ProgramOp program);
  /// The k of `every(k)` is one that a repeat can have.
  void checkEvery(shd::ProgramOp program);
  /// `update = fused` is possible.
  void checkFused(shd::ProgramOp program);
  /// Values that are saved on the host are those of one forward pass.
  void checkOffload();
  /// Says where the number of microbatches is written.
  void locateMicrobatches(shd::ProgramOp program);

private:
  /// False, after the error `twice`, if something with the same key has been
  /// read.
  bool isNew(llvm::StringRef key, llvm::SMRange range,
             const llvm::Twine &twice);
  const ast::SettingValue *only(const ast::Setting &setting);
  void refuse(const ast::SettingValue &value, const llvm::Twine &expected);
  void readType(const ast::Setting &setting, mlir::Type &type);
  std::optional<mlir::Type> typeOf(const ast::SettingValue &value,
                                   bool mayBeNone);
  std::optional<double> real(const ast::SettingValue &value, bool isPositive);
  void readOptimizer(const ast::SettingValue &value);
  void readArgument(const ast::Name &name, const ast::SettingValue &value);
  void readMicrobatches(const ast::SettingValue &value);
  void readSchedule(const ast::SettingValue &value);
  void readRemat(const ast::SettingValue &value);
  void readEvery(const ast::SettingValue &value, const ast::DimExpr &call);
  void readFrozen(const ast::Setting &setting);
  void readOffload(const ast::SettingValue &value);
  void readUpdate(const ast::SettingValue &value);
  mlir::FloatAttr number(double value) {
    return mlir::FloatAttr::get(mlir::Float64Type::get(context), value);
  }
  static mlir::DictionaryAttr orNull(const mlir::NamedAttrList &list,
                                     mlir::MLIRContext *context) {
    return list.empty() ? mlir::DictionaryAttr() : list.getDictionary(context);
  }

  SourceFiles &files;
  DimScope &dims;
  mlir::MLIRContext *context;
  llvm::StringMap<llvm::SMRange> seen;
  shd::Optimizer optimizer = shd::Optimizer::AdamW;
  mlir::Type moments = f32(), master = f32(), gradients = f32(), reduce;
  /// PyTorch's defaults; `beta1` of sgd is its momentum.
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, decay = 0.01;
  std::optional<double> clip;
  mlir::StringAttr batch;
  int64_t microbatches = 0, every = 0;
  shd::Remat remat = shd::Remat::Auto;
  double tokens = 1e12;
  llvm::SmallVector<mlir::StringAttr> frozen, recomputed;
  mlir::NamedAttrList saved, offloaded, gradientPins, momentPins, masterPins;
  bool savesSome = false;
  llvm::SmallVector<const ast::SettingValue *> frozenNames;
  std::vector<std::pair<llvm::SMRange, llvm::GlobPattern>> frozenPatterns;
  llvm::StringSet<> frozenWeights;
  shd::Offload offload = shd::Offload::None;
  bool fused = false;
  llvm::SMRange everyRange, fusedRange, microbatchesRange, offloadRange;
  /// A schedule of pipeline stages; empty: the compiler chooses.
  std::string order;
  llvm::SMRange orderRange;

  mlir::Type f32() { return mlir::Float32Type::get(context); }
};

bool TrainReader::isNew(llvm::StringRef key, llvm::SMRange range,
                        const llvm::Twine &twice) {
  auto [it, inserted] = seen.try_emplace(key, range);
  if (inserted)
    return true;
  auto diag = files.error(range) << twice.str();
  diag.attachNote(files.location(it->second)) << "first here";
  return false;
}

bool TrainReader::isNewPlacing(const ast::Placing &placing,
                               llvm::StringRef tensor) {
  llvm::StringRef what = placing.what.text;
  llvm::SMRange range = placing.tensor.name.range;
  if (!isNew((what + " " + tensor).str(), range,
             "'" + what + " " + tensor + "' stands twice in the train block"))
    return false;
  static constexpr llvm::StringLiteral places[] = {"save", "offload",
                                                   "recompute"};
  if (!llvm::is_contained(places, what))
    return true;
  for (llvm::StringRef other : places)
    if (auto it = seen.find((other + " " + tensor).str());
        other != what && it != seen.end()) {
      auto error = files.error(range)
                   << "`" << what << " " << tensor << "` contradicts `" << other
                   << " " << tensor
                   << "`: a value is saved on the device or on the host, or "
                      "computed again";
      error.attachNote(files.location(it->second)) << "first here";
      return false;
    }
  return true;
}

bool TrainReader::keeps(const ast::Placing &placing, mlir::Type weight) {
  llvm::StringRef what = placing.what.text;
  bool isMoments = what == "moments";
  if (!isMoments && what != "master")
    return true;
  mlir::Type kept = isMoments ? moments : master;
  if (kept && (isMoments ||
               kept.getIntOrFloatBitWidth() > weight.getIntOrFloatBitWidth()))
    return true;
  auto error = files.error(placing.what.range);
  if (isMoments)
    error << "the optimizer keeps no moments that `moments "
          << placing.tensor.name.text << "` could place";
  else
    error << "'" << placing.tensor.name.text
          << "' has no master copy that `master " << placing.tensor.name.text
          << "` could place: "
          << (master ? "its own type is as wide as the optimizer's"
                     : "the optimizer keeps none");
  return false;
}

void TrainReader::refuse(const ast::SettingValue &value,
                         const llvm::Twine &expected) {
  files.error(value.range) << "expected " << expected.str() << ", found '"
                           << value.text << "'";
}

const ast::SettingValue *TrainReader::only(const ast::Setting &setting) {
  if (setting.values.size() == 1)
    return &setting.values.front();
  files.error(setting.values[1].range)
      << "'" << setting.name.text << "' has one value";
  return nullptr;
}

/// Nothing after an error; a null type for `none`.
std::optional<mlir::Type> TrainReader::typeOf(const ast::SettingValue &value,
                                              bool mayBeNone) {
  if (value.text == "none" && mayBeNone)
    return mlir::Type();
  mlir::Type type = shd::typeFromName(context, value.text);
  if (type && shd::hasGradient(type))
    return type;
  refuse(value, mayBeNone ? "a type of real numbers or none"
                          : "a type of real numbers");
  return std::nullopt;
}

std::optional<double> TrainReader::real(const ast::SettingValue &value,
                                        bool isPositive) {
  double result = 0;
  std::string digits = value.text;
  llvm::erase(digits, '_');
  if (value.number) {
    std::optional<int64_t> integer = dims.evaluate(*value.number);
    if (!integer)
      return std::nullopt;
    result = double(*integer);
  } else if (llvm::StringRef(digits).getAsDouble(result)) {
    refuse(value, "a number");
    return std::nullopt;
  }
  if (!std::isfinite(result)) {
    refuse(value, "a finite number");
    return std::nullopt;
  }
  if (result > 0 || (!isPositive && result >= 0))
    return result;
  refuse(value, isPositive ? "a number above 0" : "a number of at least 0");
  return std::nullopt;
}

void TrainReader::readArgument(const ast::Name &name,
                               const ast::SettingValue &value) {
  bool isAdam = optimizer == shd::Optimizer::AdamW;
  if (name.text == "master" || name.text == (isAdam ? "moments" : "momentum")) {
    bool mayBeNone = name.text != "moments";
    if (auto type = typeOf(value, mayBeNone))
      (name.text == "master" ? master : moments) = *type;
    return;
  }
  double *field = llvm::StringSwitch<double *>(name.text)
                      .Case("lr", &lr)
                      .Case("decay", &decay)
                      .Case("beta1", &beta1)
                      .Case("beta2", isAdam ? &beta2 : nullptr)
                      .Case("eps", isAdam ? &eps : nullptr)
                      .Default(nullptr);
  if (!field) {
    files.error(name.range) << "optimizer '" << (isAdam ? "adamw" : "sgd")
                            << "' has no '" << name.text << "'";
    return;
  }
  std::optional<double> read = real(value, /*isPositive=*/false);
  if (read && (field == &beta1 || field == &beta2) && *read >= 1)
    return refuse(value, "a number below 1");
  if (read)
    *field = *read;
}

void TrainReader::readOptimizer(const ast::SettingValue &value) {
  llvm::StringRef name = value.function.empty()
                             ? llvm::StringRef(value.text)
                             : llvm::StringRef(value.function);
  std::optional<shd::Optimizer> found = shd::symbolizeOptimizer(name);
  if (!found)
    return refuse(value, "optimizer adamw or sgd");
  optimizer = *found;
  if (optimizer == shd::Optimizer::Sgd)
    decay = 0;
  for (const auto &[key, argument] : value.arguments)
    if (isNew((name + "(" + key.text).str(), key.range,
              "'" + key.text + "' of '" + name + "' is given twice"))
      readArgument(key, argument);
}

void TrainReader::readMicrobatches(const ast::SettingValue &value) {
  microbatches = 0;
  if (value.text == "auto")
    return;
  if (!value.number)
    return refuse(value, "a number of microbatches or auto");
  std::optional<int64_t> count = dims.evaluate(*value.number);
  if (count && *count < 1)
    return refuse(value, "at least one microbatch");
  microbatches = count.value_or(0);
  microbatchesRange = value.range;
}

void TrainReader::locateMicrobatches(shd::ProgramOp program) {
  if (microbatchesRange.isValid())
    program->setAttr(shd::kMicrobatchesAt, files.location(microbatchesRange));
}

void TrainReader::readSchedule(const ast::SettingValue &value) {
  std::string text = value.text;
  llvm::erase_if(text, [](char each) { return each == ' '; });
  if (text == shd::kAutoOrder)
    return;
  if (!parsePipelineOrder(text))
    return refuse(value, kOrderNames);
  order = text;
  orderRange = value.range;
}

void TrainReader::takeSchedule(shd::ProgramOp program) {
  if (order.empty())
    return;
  std::optional<shd::PipelineAttr> pipeline = program.getPipeline();
  if (!pipeline) {
    auto diag = files.error(orderRange)
                << "a schedule is that of pipeline stages, which the program "
                   "does not have";
    diag.attachNote() << "`repeat L@pp { ... }` makes stages of layers";
    return;
  }
  program.setPipelineAttr(withOrder(*pipeline, order));
}

std::optional<RematLevel> shardc::parseRemat(llvm::StringRef text) {
  if (text.consume_front("every(") && text.consume_back(")")) {
    int64_t every = 0;
    if (text.trim().getAsInteger(10, every) || every < 1)
      return std::nullopt;
    return RematLevel{shd::Remat::Every, every};
  }
  std::optional<shd::Remat> found = shd::symbolizeRemat(text);
  if (!found || *found == shd::Remat::Every)
    return std::nullopt;
  return RematLevel{*found, 0};
}

void TrainReader::readRemat(const ast::SettingValue &value) {
  const ast::DimExpr *call = value.number.get();
  if (call && call->kind == ast::DimExpr::Kind::Call && call->name == "every")
    return readEvery(value, *call);
  std::optional<RematLevel> level = parseRemat(value.text);
  if (!level)
    return refuse(value, "auto, none, full or every(k)");
  remat = level->remat;
}

void TrainReader::readEvery(const ast::SettingValue &value,
                            const ast::DimExpr &call) {
  if (call.operands.size() != 1)
    return refuse(value, "every(k) with one number of iterations");
  std::optional<int64_t> iterations = dims.evaluate(*call.operands.front());
  if (!iterations)
    return;
  if (*iterations < 1) {
    files.error(call.operands.front()->range)
        << "`every(k)` needs a k of at least 1, found " << *iterations;
    return;
  }
  remat = shd::Remat::Every;
  every = *iterations;
  everyRange = call.operands.front()->range;
}

void TrainReader::checkEvery(shd::ProgramOp program) {
  if (every == 0)
    return;
  if (program.getPipeline()) {
    files.error(everyRange)
        << "`remat = every(k)` is not supported yet with pipeline stages";
    return;
  }
  int64_t longest = 0;
  for (auto repeat : program.getBody().getOps<shd::RepeatOp>())
    longest = std::max(longest, int64_t(repeat.getCount()));
  if (every <= longest)
    return;
  auto error = files.error(everyRange) << "`remat = every(" << every << ")` ";
  if (longest == 0)
    error << "needs a `repeat`, which the program does not have";
  else
    error << "needs a repeat of at least " << every
          << " iterations, but the longest has " << longest;
}

/// Names, and patterns in quotes.
void TrainReader::readFrozen(const ast::Setting &setting) {
  for (const ast::SettingValue &value : setting.values) {
    llvm::StringRef text = value.text;
    if (text == "none" && setting.values.size() == 1)
      return;
    bool isName =
        value.number && value.number->kind == ast::DimExpr::Kind::Name;
    if (isName) {
      frozenNames.push_back(&value);
      continue;
    }
    if (!(text.consume_front("\"") && text.consume_back("\""))) {
      refuse(value, "the name of a weight, or a pattern in quotes");
      continue;
    }
    auto pattern = llvm::GlobPattern::create(text);
    if (!pattern) {
      files.error(value.range)
          << "invalid pattern: " << llvm::toString(pattern.takeError());
      continue;
    }
    frozen.push_back(mlir::StringAttr::get(context, text));
    frozenPatterns.emplace_back(value.range, std::move(*pattern));
  }
}

void TrainReader::readOffload(const ast::SettingValue &value) {
  std::optional<shd::Offload> found = shd::symbolizeOffload(value.text);
  if (!found)
    return refuse(value, "none, optimizer, activations or auto");
  offload = *found;
  offloadRange = value.range;
}

void TrainReader::readUpdate(const ast::SettingValue &value) {
  if (value.text != "auto" && value.text != "fused")
    return refuse(value, "auto or fused");
  fused = value.text == "fused";
  fusedRange = value.range;
}

/// Each update right after its gradient needs the whole gradient there.
void TrainReader::checkFused(shd::ProgramOp program) {
  if (!fused)
    return;
  if (clip)
    files.error(fusedRange) << "`update = fused` updates a weight before the "
                               "norm of all gradients is known, which `clip` "
                               "needs";
  else if (program.getPipeline())
    files.error(fusedRange)
        << "`update = fused` is not supported yet with pipeline stages";
  else if (every > 0)
    files.error(fusedRange) << "`update = fused` is not supported yet with "
                               "`remat = every(k)`";
  else if (microbatches > 1)
    files.error(fusedRange)
        << "`update = fused` needs one microbatch, but the step has "
        << microbatches;
  else
    microbatches = 1;
}

void TrainReader::checkOffload() {
  bool movesValues = offload == shd::Offload::Activations || !offloaded.empty();
  if (movesValues && every > 0)
    files.error(offloadRange) << "values on the host are not supported yet "
                                 "with `remat = every(k)`";
}

void TrainReader::read(const ast::Setting &setting) {
  llvm::StringRef name = setting.name.text;
  if (!isNew(name, setting.name.range,
             "'" + name + "' is set twice in the train block"))
    return;
  if (name == "frozen")
    return readFrozen(setting);
  static constexpr llvm::StringLiteral names[] = {
      "loss",   "optimizer", "gradients", "reduce",       "clip",
      "batch",  "remat",     "tokens",    "microbatches", "schedule",
      "frozen", "offload",   "update"};
  if (!llvm::is_contained(names, name)) {
    auto diag = files.error(setting.name.range)
                << "a train block has no field '" << name << "'";
    llvm::SmallVector<llvm::StringRef> known(std::begin(names),
                                             std::end(names));
    if (auto near = likelyName(name, known))
      diag.attachNote() << "did you mean '" << *near << "'?";
    return;
  }
  const ast::SettingValue *value = only(setting);
  if (!value)
    return;
  if (name == "optimizer")
    return readOptimizer(*value);
  if (name == "microbatches")
    return readMicrobatches(*value);
  if (name == "schedule")
    return readSchedule(*value);
  if (name == "remat")
    return readRemat(*value);
  if (name == "offload")
    return readOffload(*value);
  if (name == "update")
    return readUpdate(*value);
  if (name == "gradients" || name == "reduce") {
    if (auto type = typeOf(*value, /*mayBeNone=*/false))
      (name == "gradients" ? gradients : reduce) = *type;
  } else if (name == "clip" || name == "tokens") {
    if (name == "clip" && value->text == "none")
      return;
    if (std::optional<double> read = real(*value, /*isPositive=*/true)) {
      if (name == "clip")
        clip = read;
      else
        tokens = *read;
    }
  } else if (name == "batch") {
    if (isAutoBatch(*value, dims))
      return;
    if (!dims.has(value->text))
      return refuse(*value, "the name of a dim or auto");
    batch = mlir::StringAttr::get(context, value->text);
  }
}

shd::TrainingAttr TrainReader::take(llvm::StringRef loss) {
  return shd::TrainingAttr::get(
      context, loss, optimizer, moments, master, gradients, reduce, number(lr),
      number(beta1), number(beta2), number(eps), number(decay),
      clip ? number(*clip) : mlir::FloatAttr(), batch, microbatches, remat,
      every, number(tokens), frozen,
      savesSome ? saved.getDictionary(context) : mlir::DictionaryAttr(),
      orNull(gradientPins, context), orNull(momentPins, context),
      orNull(masterPins, context), recomputed, offload,
      orNull(offloaded, context), fused);
}

shd::TrainingAttr shardc::withStep(shd::TrainingAttr attr,
                                   const StepForm &form) {
  mlir::MLIRContext *context = attr.getContext();
  RematLevel level{attr.getRemat(), attr.getEvery()};
  mlir::DictionaryAttr save = attr.getSave();
  llvm::SmallVector<mlir::StringAttr> recomputed(attr.getRecomputed());
  if (form.remat) {
    level = *parseRemat(*form.remat);
    save = nullptr;
    recomputed.clear();
    for (const std::string &name : form.recomputed)
      recomputed.push_back(mlir::StringAttr::get(context, name));
  }
  return shd::TrainingAttr::get(
      context, attr.getLoss(), attr.getOptimizer(), attr.getMoments(),
      attr.getMaster(), attr.getGradients(), attr.getReduce(), attr.getLr(),
      attr.getBeta1(), attr.getBeta2(), attr.getEps(), attr.getDecay(),
      attr.getClip(), attr.getBatch(),
      form.microbatches.value_or(attr.getMicrobatches()), level.remat,
      level.every, attr.getTokens(), attr.getFrozen(), save,
      attr.getGradientPins(), attr.getMomentPins(), attr.getMasterPins(),
      recomputed,
      form.offload ? *shd::symbolizeOffload(*form.offload) : attr.getOffload(),
      attr.getOffloaded(), attr.getFused() || form.isFused);
}

shd::PipelineAttr shardc::withOrder(shd::PipelineAttr attr,
                                    llvm::StringRef order) {
  return shd::PipelineAttr::get(attr.getContext(), attr.getAxis(),
                                attr.getIndex(), attr.getLayers(),
                                attr.getHeld(), order);
}

/// The loss leaves the program, whether it is declared as an output or not.
void Importer::importLoss(const ast::Setting &setting, shd::ProgramOp program) {
  const ast::SettingValue &value = setting.values.front();
  for (auto output : program.getBody().getOps<shd::OutputOp>())
    if (output.getSym() == value.text)
      return;
  ast::OutputDecl output;
  output.name = {value.text, value.range};
  importOutput(output);
  statement.reset();
}

namespace {
/// A tensor of the program, its indices as it has them itself, which are
/// unknown of what a repeat carries.
struct NamedTensor {
  llvm::StringRef name;
  mlir::RankedTensorType type;
  llvm::SmallVector<llvm::StringRef, 4> indices;
};
} // namespace

/// The program's weights, or what its statements make.
static std::vector<NamedTensor> namedTensors(shd::ProgramOp program,
                                             bool areWeights) {
  std::vector<NamedTensor> tensors;
  program->walk([&](mlir::Operation *op) {
    auto declare = llvm::dyn_cast<shd::DeclareOp>(op);
    if (areWeights && declare && declare.getKind() == shd::TensorKind::Weight) {
      auto names = declare.getIndices().getAsValueRange<mlir::StringAttr>();
      tensors.push_back({declare.getSym(),
                         shd::partType(declare.getType(), declare.getStacked()),
                         llvm::to_vector_of<llvm::StringRef, 4>(
                             llvm::drop_begin(names, declare.getStacked()))});
    }
    if (areWeights || op->hasAttr(shd::kTemporary))
      return;
    auto sharded = llvm::dyn_cast<shd::ShardingRuleOpInterface>(op);
    for (mlir::OpResult result : op->getResults())
      if (llvm::StringRef name = shd::getResultName(result); !name.empty()) {
        tensors.push_back(
            {name, mlir::cast<mlir::RankedTensorType>(result.getType()), {}});
        if (sharded)
          tensors.back().indices =
              sharded.getIndexing().getResultIndices(result.getResultNumber());
      }
  });
  return tensors;
}

/// `y.h` is an `h` in a layer.
static bool isCalled(llvm::StringRef name, llvm::StringRef written) {
  return name.consume_back(written) && (name.empty() || name.back() == '.');
}

/// The same of weights: `y.W.2` is a `W`, too, in another call.
static bool isWeightCalled(llvm::StringRef name, llvm::StringRef written) {
  auto [front, number] = name.rsplit('.');
  bool isNumbered = !number.empty() && llvm::all_of(number, [](char c) {
    return llvm::isDigit(c);
  });
  return isCalled(isNumbered ? front : name, written);
}

bool ast::isOfWeight(const ast::Placing &placing, llvm::StringRef weight) {
  llvm::StringRef name = placing.tensor.name.text;
  return placing.tensor.isQuoted ? weight == name
                                 : isWeightCalled(weight, name);
}

void TrainReader::freeze(llvm::ArrayRef<llvm::StringRef> weights) {
  for (const auto &[range, pattern] : frozenPatterns) {
    if (llvm::any_of(weights, [&](llvm::StringRef weight) {
          return pattern.match(weight);
        }))
      continue;
    auto diag = files.error(range) << "no weight's name matches the pattern";
    auto *inLayer = llvm::find_if(
        weights, [](llvm::StringRef weight) { return weight.contains('.'); });
    if (inLayer != weights.end())
      diag.attachNote() << "in layers, names begin with that of the call: '"
                        << *inLayer << "'";
  }
  for (llvm::StringRef weight : weights)
    if (llvm::any_of(frozenPatterns, [&](const auto &pattern) {
          return pattern.second.match(weight);
        }))
      frozenWeights.insert(weight);
  for (const ast::SettingValue *value : frozenNames) {
    size_t before = frozen.size();
    for (llvm::StringRef weight : weights)
      if (isWeightCalled(weight, value->text)) {
        frozen.push_back(mlir::StringAttr::get(context, weight));
        frozenWeights.insert(weight);
      }
    if (frozen.size() > before)
      continue;
    auto diag = files.error(value->range)
                << "no weight is called '" << value->text << "'";
    if (auto near = likelyName(value->text, weights))
      diag.attachNote() << "did you mean '" << *near << "'?";
  }
}

/// The pin of a placing on a tensor; null if it has none, failure after an
/// error. An index has the name that it has in the tensor, or that of a dim of
/// its extent.
static mlir::FailureOr<shd::ShardingAttr>
pinOf(SourceFiles &files, Placements &placements, DimScope &dims,
      const ast::Placing &placing, const NamedTensor &tensor) {
  const std::optional<ast::IndexList> &list = placing.tensor.indices;
  if (!list)
    return shd::ShardingAttr();
  size_t written = list->indices.size();
  if (written != size_t(tensor.type.getRank())) {
    files.error(list->range) << "'" << placing.tensor.name.text << "' has "
                             << counted(tensor.type.getRank(), "index")
                             << ", but " << written << " are written";
    return mlir::failure();
  }
  bool ok = true;
  for (auto [dim, index] : llvm::enumerate(list->indices)) {
    if (!tensor.indices.empty() && index.name == tensor.indices[dim])
      continue;
    int64_t extent = tensor.type.getDimSize(dim);
    std::optional<int64_t> size = dims.extent(index.name, index.range);
    ok &= size == extent;
    if (size && *size != extent) {
      auto diag = files.error(index.range)
                  << "index '" << index.name << "' has extent " << *size
                  << ", but dimension " << dim + 1 << " of '"
                  << placing.tensor.name.text << "' has extent " << extent;
      if (!tensor.indices.empty())
        llvm::interleaveComma(tensor.indices, diag.attachNote()
                                                  << "'" << tensor.name
                                                  << "' has indices ");
    }
  }
  if (!ok)
    return mlir::failure();
  return placements.pin(*list, tensor.type.getShape());
}

/// A value that is recomputed although `remat` keeps it: the name that it has,
/// or as `recomputableValues` numbers those without one.
void Importer::importRecomputed(const ast::Placing &placing,
                                shd::ProgramOp program, TrainReader &reader) {
  llvm::StringRef name = placing.tensor.name.text;
  if (placing.tensor.indices)
    files.error(placing.tensor.indices->range)
        << "`recompute` names a value, which has no layout of its own";
  if (!reader.isNewPlacing(placing, name))
    return;
  for (const shd::RecomputableValue &value : shd::recomputableValues(program))
    if (value.name == name)
      return reader.recompute(name);
  files.error(placing.tensor.name.range)
      << "no value that a repeat makes is called '" << name << "'";
}

/// Layouts of several tensors of the step, which is yet to be made, so that
/// extents are checked later: `unit` where nothing is said.
mlir::FailureOr<mlir::ArrayAttr>
Importer::pinsOf(llvm::ArrayRef<const ast::IndexList *> lists) {
  llvm::SmallVector<mlir::Attribute> pins;
  for (const ast::IndexList *list : lists) {
    auto unit = mlir::UnitAttr::get(builder.getContext());
    if (!list) {
      pins.push_back(unit);
      continue;
    }
    llvm::SmallVector<int64_t> unknown(list->indices.size(), 0);
    auto pin = placements.pin(*list, unknown);
    if (mlir::failed(pin))
      return mlir::failure();
    // `[]` says that a scalar is on every device.
    if (!*pin && list->indices.empty())
      *pin = shd::ShardingAttr::get(builder.getContext(), {}, {});
    pins.push_back(*pin ? mlir::Attribute(*pin) : unit);
  }
  return builder.getArrayAttr(pins);
}

static const ast::IndexList *orNull(const std::optional<ast::IndexList> &list) {
  return list ? &*list : nullptr;
}

/// The record of `layout` or `copy` for shd-place.
mlir::DictionaryAttr Importer::importLayout(const ast::StepLayout &layout) {
  llvm::SmallVector<const ast::IndexList *> made, stored, read;
  llvm::SmallVector<llvm::StringRef> operands;
  for (const ast::PlacedTensor &result : layout.results) {
    made.push_back(orNull(result.indices));
    stored.push_back(orNull(result.stored));
  }
  for (const ast::PlacedTensor &operand : layout.operands) {
    operands.push_back(operand.name.text);
    read.push_back(orNull(operand.indices));
    if (operand.stored)
      files.error(operand.stored->range)
          << "an operand has one layout, in which it is read";
  }
  const ast::Name &name = layout.results.front().name;
  bool isCopy = layout.what.text == "copy";
  if (isCopy &&
      (layout.results.size() > 1 || !layout.operands.empty() || stored.front()))
    files.error(layout.what.range) << "`copy` says the layout of one copy";
  auto madePins = pinsOf(made), storedPins = pinsOf(stored),
       readPins = pinsOf(read);
  if (mlir::failed(madePins) || mlir::failed(storedPins) ||
      mlir::failed(readPins))
    return {};
  mlir::NamedAttrList record;
  record.set("name", builder.getStringAttr(name.text));
  record.set("made", *madePins);
  record.set("stored", *storedPins);
  record.set("operands", builder.getStrArrayAttr(operands));
  record.set("read", *readPins);
  record.set("loc", mlir::LocationAttr(files.location(name.range)));
  if (isCopy)
    record.set("copy", builder.getUnitAttr());
  return record.getDictionary(builder.getContext());
}

void Importer::importPlacing(const ast::Placing &placing,
                             shd::ProgramOp program, TrainReader &reader) {
  llvm::StringRef what = placing.what.text, name = placing.tensor.name.text;
  bool ofWeight = what == "gradient" || what == "moments" || what == "master";
  if (what == "recompute")
    return importRecomputed(placing, program, reader);
  if (!ofWeight && what != "save" && what != "offload") {
    files.error(placing.what.range) << "expected save, offload, recompute, "
                                       "gradient, moments, master, layout or "
                                       "copy, found '"
                                    << what << "'";
    return;
  }
  bool isFound = false, isFrozen = false;
  llvm::SmallVector<llvm::StringRef> known;
  for (const NamedTensor &tensor : namedTensors(program, ofWeight)) {
    llvm::StringRef full = tensor.name;
    known.push_back(full);
    bool isMeant = ofWeight                  ? isOfWeight(placing, full)
                   : placing.tensor.isQuoted ? full == name
                                             : isCalled(full, name);
    if (!isMeant)
      continue;
    if (ofWeight && reader.isFrozen(full)) {
      isFrozen = true;
      continue;
    }
    isFound = true;
    if (!reader.isNewPlacing(placing, full) ||
        (ofWeight && !reader.keeps(placing, tensor.type.getElementType())))
      return;
    auto pin = pinOf(files, placements, *dims, placing, tensor);
    if (mlir::failed(pin))
      return;
    if (!ofWeight)
      reader.keep(placing, full,
                  *pin ? mlir::Attribute(*pin)
                       : mlir::UnitAttr::get(builder.getContext()));
    else if (*pin)
      reader.pin(what, full, *pin);
  }
  if (isFound)
    return;
  if (isFrozen) {
    files.error(placing.what.range)
        << "'" << name << "' is frozen, so that the step has no " << what
        << " of it";
    return;
  }
  if (!ofWeight)
    for (auto declare : program.getBody().getOps<shd::DeclareOp>())
      if (isCalled(declare.getSym(), name)) {
        llvm::StringRef kind = stringifyTensorKind(declare.getKind());
        files.error(placing.tensor.name.range)
            << "'" << name << "' is " << (kind == "input" ? "an " : "a ")
            << kind << ", which is always kept; `" << what
            << "` names values that statements make";
        return;
      }
  auto diag = files.error(placing.tensor.name.range)
              << "no " << (ofWeight ? "weight" : "value") << " is called '"
              << name << "'";
  llvm::sort(known);
  if (auto near = likelyName(name, known))
    diag.attachNote() << "did you mean '" << *near << "'?";
}

void Importer::setLayouts(llvm::ArrayRef<const ast::StepLayout *> layouts,
                          shd::ProgramOp program) {
  llvm::SmallVector<mlir::Attribute> records;
  for (const ast::StepLayout *layout : layouts)
    if (mlir::DictionaryAttr record = importLayout(*layout))
      records.push_back(record);
  if (!records.empty())
    program->setAttr(shd::kLayouts, builder.getArrayAttr(records));
}

/// The layouts at the top level of the file, which are those of a pipeline that
/// is not trained.
void Importer::importLayouts(const Items &items, shd::ProgramOp program) {
  llvm::SmallVector<const ast::StepLayout *> layouts;
  for (const ast::ItemPtr &item : items)
    if (auto *decl = llvm::dyn_cast<ast::LayoutDecl>(item.get()))
      layouts.push_back(&decl->layout);
  if (layouts.empty() || shd::isInferencePipeline(program))
    return setLayouts(layouts, program);
  const ast::Name &what = layouts.front()->what;
  if (program.getTraining())
    files.error(what.range) << "`" << what.text
                            << "` of a program that is trained stands in its "
                               "`train` block";
  else
    files.error(what.range)
        << "`" << what.text
        << "` is of a training step or of a pipeline, which the program is not";
}

void Importer::importTraining(const ast::TrainBlock &block,
                              shd::ProgramOp program) {
  TrainReader reader(files, *dims);
  const ast::Setting *loss = nullptr;
  for (const ast::Setting &setting : block.settings) {
    if (setting.name.text == "loss" && !loss)
      loss = &setting;
    reader.read(setting);
  }
  if (!loss) {
    files.error(block.range) << "a train block needs a loss: `loss = NAME`";
    return;
  }
  importLoss(*loss, program);
  llvm::SmallVector<llvm::StringRef> weights;
  for (const NamedTensor &tensor : namedTensors(program, /*areWeights=*/true))
    weights.push_back(tensor.name);
  reader.freeze(weights);
  if (savedInRepeats) {
    reader.saveOnlyNamed();
    for (const std::string &name : *savedInRepeats)
      reader.save(name, mlir::UnitAttr::get(builder.getContext()));
  }
  for (const ast::Placing &placing : block.placings)
    importPlacing(placing, program, reader);
  setLayouts(
      llvm::map_to_vector(
          block.layouts, [](const ast::StepLayout &layout) { return &layout; }),
      program);
  reader.takeSchedule(program);
  reader.checkEvery(program);
  reader.checkFused(program);
  reader.checkOffload();
  reader.locateMicrobatches(program);
  program.setTrainingAttr(reader.take(loss->values.front().text));
}
