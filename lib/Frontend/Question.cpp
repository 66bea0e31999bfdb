//===- Question.cpp - The texts of --sweep and --crossover ----------------===//
//
// Syntax is the grammar's rule `question`; here names are looked up in the
// program, and the values are listed.
//
//===----------------------------------------------------------------------===//

#include "shardc/Frontend/Question.h"
#include "Dims.h"
#include "HardwareImport.h"
#include "Names.h"
#include "Parse.h"
#include "Remat.h"
#include "Source.h"
#include "Stages.h"
#include "shardc/Cost/PipelineSchedule.h"
#include "shardc/Frontend/Frontend.h"
#include "llvm/ADT/StringExtras.h"

using namespace shardc;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// Names of the program's dims, in the order of definition.
static std::vector<StringRef> dimNames(const ProgramText &program) {
  std::vector<StringRef> names;
  for (const std::unique_ptr<ast::File> &file : program.files)
    for (const ast::ItemPtr &item : file->items)
      if (auto *decl = llvm::dyn_cast<ast::DimDecl>(item.get()))
        for (const ast::DimDef &def : decl->dims)
          names.push_back(def.name.text);
  return names;
}

static std::vector<StringRef> axisNames(const ProgramText &program) {
  std::vector<StringRef> names;
  if (const ast::MeshDecl *mesh = program.meshDecl())
    for (const ast::MeshAxisDecl &axis : mesh->axes)
      names.push_back(axis.name.text);
  return names;
}

namespace {
/// Reads the text of one flag.
class QuestionReader {
public:
  QuestionReader(const ProgramText &program, mlir::MLIRContext *context,
                 StringRef option)
      : program(program), files(*program.sourceMgr, context), option(option) {}

  std::optional<std::vector<Setting>> readSweep(StringRef text);
  std::optional<CrossoverRange> readCrossover(StringRef text);

private:
  bool resolveName(const ast::Question &question);
  bool checkOverridden(const ast::Question &question);
  bool checkRange(const ast::Question &question);
  bool checkValue(const ast::Question::Value &value);
  bool checkStep(const ast::Question &question);
  std::optional<std::vector<Setting>> listed(const ast::Question &question);
  std::optional<std::vector<Setting>> stepped(const ast::Question &question);
  std::vector<Setting> machines(ast::Question &question);
  Setting setting(const ast::Question::Value &value) const {
    Setting result{kind, name, value.integer, nullptr, value.range};
    if (kind == Setting::Kind::Step)
      result.step.microbatches = value.integer;
    return result;
  }
  std::optional<std::vector<Setting>> readWords(StringRef what,
                                                StringRef values);

  const ProgramText &program;
  SourceFiles files;
  StringRef option;
  std::string name;
  Setting::Kind kind = Setting::Kind::Dim;
};
} // namespace

/// Finds out what the name is the name of.
bool QuestionReader::resolveName(const ast::Question &question) {
  name = question.name.text;
  if (!question.machines.empty()) {
    kind = Setting::Kind::Hardware;
    return true;
  }
  std::vector<StringRef> dims = dimNames(program), axes = axisNames(program);
  bool isDim = llvm::is_contained(dims, name);
  bool isAxis = llvm::is_contained(axes, name);
  kind = isDim ? Setting::Kind::Dim : Setting::Kind::Axis;
  bool hasMicrobatches = program.hasTrainBlock() || program.hasPipeline();
  if (!isDim && !isAxis && name == "microbatches" && hasMicrobatches &&
      option == "--sweep") {
    kind = Setting::Kind::Step;
    return true;
  }
  if (isDim && isAxis) {
    files.error(question.name.range)
        << "'" << name << "' is both a dim and a mesh axis of the program; "
        << "give one of them another name";
    return false;
  }
  if (isDim || isAxis)
    return true;
  auto diag = files.error(question.name.range)
              << "the program has no dim and no mesh axis '" << name << "'";
  llvm::append_range(dims, axes);
  if (auto near = likelyName(name, dims))
    diag.attachNote() << "did you mean '" << *near << "'?";
  return false;
}

/// A name may not be set by another option too.
bool QuestionReader::checkOverridden(const ast::Question &question) {
  auto refuse = [&](StringRef other) {
    files.error(question.name.range)
        << "'" << name << "' is set by " << option << " and by " << other;
    return false;
  };
  if (kind == Setting::Kind::Hardware && program.hardware)
    return refuse("--hardware");
  auto isIt = [&](const ast::DimDef &def) { return def.name.text == name; };
  if (kind == Setting::Kind::Dim && llvm::any_of(program.dims, isIt))
    return refuse("--dim");
  return true;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// An extent or the size of an axis.
bool QuestionReader::checkValue(const ast::Question::Value &value) {
  if (value.integer >= 1)
    return true;
  files.error(value.range) << "expected a value of '" << name
                           << "' of at least 1, found " << value.integer;
  return false;
}

bool QuestionReader::checkRange(const ast::Question &question) {
  const ast::Question::Value &first = question.values.front();
  if (!checkValue(first))
    return false;
  if (question.last->integer >= first.integer)
    return true;
  files.error(first.range) << "expected an ascending range, found "
                           << first.integer << ".." << question.last->integer;
  return false;
}

std::optional<std::vector<Setting>>
QuestionReader::listed(const ast::Question &question) {
  std::vector<Setting> result;
  for (const ast::Question::Value &value : question.values) {
    if (!checkValue(value))
      return std::nullopt;
    result.push_back(setting(value));
  }
  return result;
}

/// A step that leads to other values.
bool QuestionReader::checkStep(const ast::Question &question) {
  bool multiplies = question.step == ast::Question::Step::Multiply;
  int64_t least = multiplies ? 2 : 1;
  if (question.by.integer >= least)
    return true;
  files.error(question.by.range)
      << "expected a " << (multiplies ? "factor" : "step") << " of at least "
      << least << ", found " << question.by.integer;
  return false;
}

std::optional<std::vector<Setting>>
QuestionReader::stepped(const ast::Question &question) {
  using Step = ast::Question::Step;
  if (!checkRange(question))
    return std::nullopt;
  if (question.step == Step::None) {
    files.error(question.last->range)
            .append("a range of ", option, " needs a step")
            .attachNote()
        << "write `* 2` after it to double the value from point to point, or "
           "`+ 64` to add to it";
    return std::nullopt;
  }
  if (!checkStep(question))
    return std::nullopt;
  bool multiplies = question.step == Step::Multiply;
  int64_t by = question.by.integer, last = question.last->integer;
  std::vector<Setting> result;
  ast::Question::Value value = question.values.front();
  while (true) {
    result.push_back(setting(value));
    if (int64_t(result.size()) > kMaxPoints) {
      files.error(question.range)
          << "more than " << kMaxPoints << " points, which are too many";
      return std::nullopt;
    }
    bool more =
        multiplies ? value.integer <= last / by : value.integer <= last - by;
    if (!more)
      return result;
    value.integer = multiplies ? value.integer * by : value.integer + by;
  }
}

std::vector<Setting> QuestionReader::machines(ast::Question &question) {
  std::vector<Setting> result;
  for (std::unique_ptr<ast::HardwareDecl> &machine : question.machines) {
    llvm::SMRange where = machine->range;
    result.push_back({kind, name, 0, std::move(machine), where});
  }
  return result;
}

/// A choice of a step that is a word; false if there is no such choice.
static bool choose(StringRef what, StringRef word, StepForm &form) {
  if (what == "offload") {
    form.offload = word.str();
    return shd::symbolizeOffload(word).has_value();
  }
  bool isRemat = what == "remat";
  if (isRemat ? !parseRemat(word)
              : word != shd::kAutoOrder && !parsePipelineOrder(word))
    return false;
  (isRemat ? form.remat : form.schedule) = word.str();
  return true;
}

/// `auto, none, full, every(4)`: words, of which the grammar of questions knows
/// none.
std::optional<std::vector<Setting>>
QuestionReader::readWords(StringRef what, StringRef values) {
  std::vector<Setting> result;
  llvm::SmallVector<StringRef> words;
  values.split(words, ',');
  for (StringRef word : words) {
    word = word.trim();
    Setting setting{Setting::Kind::Step, what.str(), 0, nullptr, {}};
    if (!choose(what, word, setting.step)) {
      emitError(mlir::UnknownLoc::get(files.getContext()))
          << option << ": expected " << what << " "
          << (what == "remat"     ? "auto, none, full or every(k)"
              : what == "offload" ? "none, optimizer, activations or auto"
                                  : kOrderNames.data())
          << ", found '" << word << "'";
      return std::nullopt;
    }
    result.push_back(std::move(setting));
  }
  return result;
}

std::optional<std::vector<Setting>> QuestionReader::readSweep(StringRef text) {
  StringRef rest = text.trim();
  auto [what, after] = rest.split(' ');
  bool isWord = (llvm::is_contained({"remat", "offload"}, what) &&
                 program.hasTrainBlock()) ||
                (what == "schedule" && program.hasPipeline());
  after = after.ltrim();
  if (isWord && after.consume_front("in "))
    return readWords(what, after);
  std::unique_ptr<ast::Question> question = parseQuestion(files, option, text);
  if (!question || !resolveName(*question) || !checkOverridden(*question))
    return std::nullopt;
  if (kind == Setting::Kind::Hardware)
    return machines(*question);
  return question->last ? stepped(*question) : listed(*question);
}

std::optional<CrossoverRange> QuestionReader::readCrossover(StringRef text) {
  using Step = ast::Question::Step;
  std::unique_ptr<ast::Question> question = parseQuestion(files, option, text);
  if (!question || !resolveName(*question) || !checkOverridden(*question))
    return std::nullopt;
  if (kind == Setting::Kind::Hardware) {
    files.error(question->name.range)
        << option << " expects a dim or a mesh axis, found 'hardware'";
    return std::nullopt;
  }
  CrossoverRange range;
  range.kind = kind;
  range.name = name;
  range.where = question->range;
  if (question->last && question->step != Step::Multiply) {
    bool adds = question->step == Step::Add;
    if (!checkRange(*question) || (adds && !checkStep(*question)))
      return std::nullopt;
    range.low = question->values.front().integer;
    range.high = question->last->integer;
    range.step = adds ? question->by.integer : 1;
    return range;
  }
  auto values = question->last ? stepped(*question) : listed(*question);
  if (!values)
    return std::nullopt;
  for (const Setting &value : *values)
    range.listed.push_back(value.number);
  llvm::sort(range.listed);
  range.listed.erase(llvm::unique(range.listed), range.listed.end());
  range.low = range.listed.front();
  range.high = range.listed.back();
  return range;
}

std::optional<std::vector<Setting>>
shardc::readSweep(const ProgramText &program, mlir::MLIRContext *context,
                  StringRef text) {
  return QuestionReader(program, context, "--sweep").readSweep(text);
}

bool shardc::checkMachines(const ProgramText &program,
                           mlir::MLIRContext *context,
                           llvm::ArrayRef<Setting> settings) {
  SourceFiles files(*program.sourceMgr, context);
  bool ok = true;
  for (const Setting &setting : settings) {
    if (!setting.machine)
      continue;
    std::optional<Machine> catalogued =
        catalogueMachine(setting.machine->name.text);
    ok &= importMachine(files, *setting.machine,
                        catalogued ? &*catalogued : nullptr)
              .has_value();
  }
  return ok;
}

std::optional<Setting> shardc::readMachine(const ProgramText &program,
                                           mlir::MLIRContext *context,
                                           StringRef text) {
  SourceFiles files(*program.sourceMgr, context);
  std::shared_ptr<ast::HardwareDecl> machine =
      parseHardwareOverride(files, text);
  if (!machine)
    return std::nullopt;
  llvm::SMRange where = machine->range;
  return Setting{Setting::Kind::Hardware, "hardware", 0, std::move(machine),
                 where};
}

std::optional<CrossoverRange> shardc::readCrossover(const ProgramText &program,
                                                    mlir::MLIRContext *context,
                                                    StringRef text) {
  return QuestionReader(program, context, "--crossover").readCrossover(text);
}

/// The text of a specification with white space and comments as it was written,
/// but on one line.
static std::string onOneLine(llvm::SMRange range) {
  StringRef text(range.Start.getPointer(),
                 range.End.getPointer() - range.Start.getPointer());
  llvm::SmallVector<StringRef> words;
  llvm::SplitString(text, words, " \t\r\n");
  return llvm::join(words, " ");
}

std::string Setting::valueText() const {
  if (machine)
    return onOneLine(machine->range);
  if (step.schedule)
    return *step.schedule;
  if (step.offload)
    return *step.offload;
  return step.remat ? *step.remat : std::to_string(number);
}

//===----------------------------------------------------------------------===//
// Divisibility
//===----------------------------------------------------------------------===//

namespace {
/// Multiplies what extents are divided by.
class Period {
public:
  explicit Period(DimScope &dims) : dims(dims) {}

  void multiply(const ast::DimExpr &expr) {
    std::optional<int64_t> value = dims.evaluate(expr);
    constexpr int64_t most = int64_t(1) << 32;
    if (value && *value > 0 && *value <= most / product)
      product *= *value;
  }
  void addDivisors(const ast::DimExpr &root);
  void addItems(llvm::ArrayRef<ast::ItemPtr> items);

  int64_t product = 1;

private:
  DimScope &dims;
};
} // namespace

void Period::addDivisors(const ast::DimExpr &root) {
  using Kind = ast::DimExpr::Kind;
  llvm::SmallVector<const ast::DimExpr *> stack{&root};
  while (!stack.empty()) {
    const ast::DimExpr *expr = stack.pop_back_val();
    bool divides = expr->kind == Kind::Div || expr->kind == Kind::Rem ||
                   (expr->kind == Kind::Call && expr->name == "ceildiv");
    if (divides && expr->operands.size() == 2)
      multiply(*expr->operands[1]);
    for (const ast::DimExprPtr &operand : expr->operands)
      stack.push_back(operand.get());
  }
}

void Period::addItems(llvm::ArrayRef<ast::ItemPtr> items) {
  for (const ast::ItemPtr &item : items) {
    if (auto *decl = llvm::dyn_cast<ast::DimDecl>(item.get()))
      for (const ast::DimDef &def : decl->dims)
        addDivisors(*def.value);
    else if (auto *layer = llvm::dyn_cast<ast::LayerDecl>(item.get()))
      addItems(layer->body);
    else if (auto *repeat = llvm::dyn_cast<ast::RepeatStmt>(item.get()))
      addItems(repeat->body);
  }
}

namespace {
/// The dims of the files, evaluated without reporting anything.
class QuietDims {
public:
  QuietDims(const ProgramText &program, mlir::MLIRContext *context)
      : silence(context, [](mlir::Diagnostic &) {}),
        files(*program.sourceMgr, context), dims(files, nullptr) {
    for (const std::unique_ptr<ast::File> &file : program.files)
      for (const ast::ItemPtr &item : file->items)
        if (auto *decl = llvm::dyn_cast<ast::DimDecl>(item.get()))
          for (const ast::DimDef &def : decl->dims)
            dims.define(def);
    for (const ast::DimDef &def : program.dims)
      dims.replace(def);
  }

private:
  mlir::ScopedDiagnosticHandler silence;
  SourceFiles files;

public:
  DimScope dims;
};
} // namespace

int64_t shardc::divisibilityPeriod(const ProgramText &program,
                                   mlir::MLIRContext *context) {
  QuietDims quiet(program, context);
  Period period(quiet.dims);
  if (const ast::MeshDecl *mesh = program.meshDecl())
    for (const ast::MeshAxisDecl &axis : mesh->axes)
      period.multiply(*axis.size);
  for (const std::unique_ptr<ast::File> &file : program.files)
    period.addItems(file->items);
  return period.product;
}

std::optional<int64_t> shardc::writtenExtent(const ProgramText &program,
                                             mlir::MLIRContext *context,
                                             StringRef dim) {
  return QuietDims(program, context).dims.extent(dim, {});
}
