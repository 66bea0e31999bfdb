//===- Repeats.cpp - Repeats as scans of functions ------------------------===//
//
// The body of a repeat is a function of the carried values and of what an
// iteration has of its own, and the repeat a lax.scan of it. A buffer that the
// body changes is carried, and so is a stacked tensor that is replaced: XLA
// writes them in place.
//
// A repeat over segments (`remat = every(k)`) has the scan of a segment in its
// body. Where the last segment is shorter, the function takes the number of
// iterations, is scanned over the others and called for the last one. So every
// trip count is a constant, and no iteration runs in vain.
//
//===----------------------------------------------------------------------===//

#include "Function.h"
#include "shardc/Dialect/Shd/IR/Segments.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::jax;
using llvm::make_first_range;

//===----------------------------------------------------------------------===//
// Numbers of iterations and parts
//===----------------------------------------------------------------------===//

/// `size["L.segments"]`, the number of segments, and
/// `size["L.segment.length"]`, the iterations of one, of `segmented`, the
/// repeat that runs one of them.
static std::string numberOfSegments(PythonFile &file, shd::RepeatOp segmented) {
  auto small = cast<shd::RepeatOp>(file.small.lookup(segmented));
  return file.sizes.size(cat(segmented.getIndex(), ".segments"),
                         shd::segmentsOf(segmented)->number(),
                         shd::segmentsOf(small)->number());
}

static std::string lengthOfSegment(PythonFile &file, shd::RepeatOp segmented) {
  auto small = cast<shd::RepeatOp>(file.small.lookup(segmented));
  return file.sizes.size(cat(segmented.getIndex(), ".segment.length"),
                         shd::segmentsOf(segmented)->length,
                         shd::segmentsOf(small)->length);
}

std::string FunctionPrinter::iterationsOf(shd::RepeatOp repeat) {
  if (shd::RepeatOp segmented = shd::segmentedWithin(repeat))
    return numberOfSegments(file, segmented);
  if (std::optional<shd::Segments> segments = shd::segmentsOf(repeat)) {
    std::string known = inSegment.lookup(repeat->getParentOp());
    std::string count = known.empty() ? lengthOfSegment(file, repeat) : known;
    return segments->left ? cat(count, " - ", segments->left) : count;
  }
  auto small = cast<shd::RepeatOp>(file.small.lookup(repeat));
  std::string count =
      file.sizes.size(repeat.getIndex(), repeat.getCount(), small.getCount());
  bool isOfChunk = isLayersOfMicrobatch(repeat) && file.chunks > 1;
  return isOfChunk ? cat(count, " // ", file.chunks) : count;
}

std::string FunctionPrinter::partNumber(Value stack, unsigned dim,
                                        Value iteration, bool isAhead) {
  std::string number = array(iteration);
  shd::RepeatOp repeat = shd::repeatOf(iteration);
  std::optional<shd::Segments> segments;
  if (repeat && shd::isOfSaved(stack))
    segments = shd::segmentsOf(repeat);
  if (!segments)
    return number;
  if (isAhead)
    number = cat(number, " + 1");
  int64_t parts = cast<RankedTensorType>(stack.getType()).getDimSize(dim);
  std::string length = lengthOfSegment(file, repeat);
  if (parts == segments->length)
    return cat(atom(number), " % ", length);
  return cat(file.helper("part_of_segments"), "(", number, ", ",
             numberOfSegments(file, repeat), ", ", length, ")");
}

std::string FunctionPrinter::partNumbers(Value stack, ValueRange at,
                                         size_t known, bool isAhead) {
  SmallVector<std::string> numbers;
  for (size_t dim = known; dim < at.size(); ++dim)
    numbers.push_back(partNumber(stack, dim, at[dim], isAhead));
  return commas(numbers);
}

/// The scans around it have narrowed the tensor down; the other numbers index
/// the rest. Parts whose numbers are computed have a name.
void FunctionPrinter::printPart(shd::PartOp part) {
  Value source = part.getSource();
  std::string text = array(source);
  std::string wanted = cat(carriedName(text), "_part");
  size_t known = narrowed.lookup(source).size();
  std::string numbers = partNumbers(source, part.getAt(), known);
  if (!numbers.empty())
    text = partOf(source, text, numbers);
  std::string &name = expressions[part];
  name = text;
  if (StringRef(numbers).find_first_of("(%") != StringRef::npos) {
    name = names.make(wanted);
    line(cat(name, " = ", text));
  }
}

//===----------------------------------------------------------------------===//
// Functions and their scans
//===----------------------------------------------------------------------===//

/// The buffers that a repeat changes.
static SmallVector<Value> buffersOf(shd::RepeatOp repeat) {
  llvm::SetVector<Value> buffers;
  repeat.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isOfBuffer(op))
      buffers.insert(op->getOperand(1));
  });
  return buffers.takeVector();
}

static bool replacesState(Operation *op) {
  return isa<shd::UpdateOp, spmd::UpdateOp>(op) && !isOfBuffer(op);
}

class FunctionPrinter::RepeatPrinter {
public:
  RepeatPrinter(FunctionPrinter &printer, shd::RepeatOp repeat)
      : printer(printer), file(printer.file), repeat(repeat),
        body(repeat.getBody().front()), count(printer.iterationsOf(repeat)),
        segmented(shd::segmentedWithin(repeat)),
        maySkip(printer.isLayersOfMicrobatch(repeat) && file.isUneven) {}

  LogicalResult print(ArrayRef<std::string> from);

private:
  void findCarried(ArrayRef<std::string> from);
  SmallVector<Value> findScanned();
  void findReplaced();
  bool needsNumber();
  void findOwn();
  /// The numbers of the iterations, as an array.
  std::string numbers(const std::string &iterations);
  LogicalResult printFunction();
  LogicalResult printBody();
  std::string takeYielded();
  std::string nameResults();
  std::string scan(const std::string &from, const std::string &iterations);
  void printSegments(const std::string &results);

  std::string name(StringRef wanted) { return printer.names.make(wanted); }
  bool isReplaced(Value stack) const {
    return llvm::is_contained(make_first_range(replaced), stack);
  }
  bool lastIsShorter() const {
    return segmented && shd::segmentsOf(segmented)->shortage() > 0;
  }

  FunctionPrinter &printer;
  PythonFile &file;
  shd::RepeatOp repeat;
  Block &body;
  std::string count;
  /// The repeat that runs a segment, if this one runs over segments.
  shd::RepeatOp segmented;
  /// Some iterations may belong to a layer that the chunk lacks.
  bool maySkip;

  std::string function;
  SmallVector<Value> buffers;
  /// The stacked tensors of which each iteration gets its part.
  SmallVector<Value> scanned;
  /// Those of them that iterations replace, with their names in the file.
  SmallVector<std::pair<Value, std::string>> replaced;
  /// Initial values, the names that carried values want, and theirs inside.
  SmallVector<std::string> inits, wanted, carried;
  /// Names of what an iteration has of its own, and the stacks of it. The
  /// number of the iteration is the first, if it is there.
  SmallVector<std::string> own, stacks;
  bool hasNumber = false;
  /// States that its operations have updated; while the function is printed,
  /// those of operations before it.
  SmallVector<NamedExpression> others;
};

void FunctionPrinter::RepeatPrinter::findCarried(ArrayRef<std::string> from) {
  inits.assign(from.begin(), from.end());
  if (from.empty())
    for (Value init : repeat.getInits())
      inits.push_back(printer.array(init));
  SmallVector<Value> arguments(repeat.getCarried());
  buffers = buffersOf(repeat);
  for (Value buffer : buffers) {
    inits.push_back(printer.array(buffer));
    arguments.push_back(buffer);
  }
  for (auto [number, argument] : llvm::enumerate(arguments)) {
    wanted.push_back(carriedName(inits[number]));
    carried.push_back(name(wanted.back()));
    printer.expressions[argument] = carried.back();
  }
}

/// Everything that the body reads of them are parts of its iteration, and of
/// those inside of it. The iterations of a segment read by number: a scan would
/// copy their parts of the weights first.
SmallVector<Value> FunctionPrinter::RepeatPrinter::findScanned() {
  SmallVector<Value> found;
  if (segmented || shd::segmentsOf(repeat))
    return found;
  repeat.getBody().walk([&](shd::PartOp part) {
    Value source = part.getSource();
    size_t known = printer.narrowed.lookup(source).size();
    bool isMine = part.getAt().size() > known &&
                  part.getAt()[known] == repeat.getIteration();
    auto isPart = [&](Operation *user) {
      auto other = dyn_cast<shd::PartOp>(user);
      return !repeat->isAncestor(user) || replacesState(user) ||
             (other && other.getAt().take_front(known + 1) ==
                           part.getAt().take_front(known + 1));
    };
    if (isMine && !llvm::is_contained(found, source) &&
        llvm::all_of(source.getUsers(), isPart))
      found.push_back(source);
  });
  return found;
}

void FunctionPrinter::RepeatPrinter::findReplaced() {
  repeat.getBody().walk([&](Operation *op) {
    if (!replacesState(op))
      return;
    Value state = op->getOperand(1);
    auto symbol = state.getDefiningOp()->getAttrOfType<StringAttr>("sym");
    if (llvm::is_contained(scanned, state))
      replaced.push_back({state, file.parameters.lookup(symbol.getValue())});
  });
  for (Value stack : make_first_range(replaced)) {
    inits.push_back(printer.array(stack));
    carried.push_back(printer.array(stack));
  }
}

bool FunctionPrinter::RepeatPrinter::needsNumber() {
  auto isScanned = [&](Operation *user) {
    auto part = dyn_cast<shd::PartOp>(user);
    return replacesState(user) ||
           (part && llvm::is_contained(scanned, part.getSource()));
  };
  return segmented || maySkip || !replaced.empty() ||
         !llvm::all_of(repeat.getIteration().getUsers(), isScanned) ||
         llvm::any_of(body, [](Operation &op) {
           return spmd::stepsInEachIteration(&op);
         });
}

std::string
FunctionPrinter::RepeatPrinter::numbers(const std::string &iterations) {
  std::string text = cat(
      "jnp.arange(", iterations,
      ", dtype=", file.type(IntegerType::get(repeat.getContext(), 32)), ")");
  if (!shd::segmentsOf(repeat))
    return text;
  auto around = cast<shd::RepeatOp>(repeat->getParentOp());
  return cat(printer.array(around.getIteration()), " * ",
             lengthOfSegment(file, repeat), " + ", text);
}

void FunctionPrinter::RepeatPrinter::findOwn() {
  hasNumber = needsNumber();
  if (hasNumber) {
    own.push_back(name(repeat.getIndex()));
    printer.expressions[repeat.getIteration()] = own.back();
  }
  for (Value stack : scanned) {
    printer.narrowed[stack].push_back(repeat.getIteration());
    if (isReplaced(stack))
      continue;
    own.push_back(printer.array(stack));
    stacks.push_back(printer.array(stack));
  }
}

/// The statements of the function, and what it returns.
LogicalResult FunctionPrinter::RepeatPrinter::printBody() {
  if (!carried.empty())
    printer.line(cat(pythonTuple(carried), " = carried"));
  if (!own.empty())
    printer.line(cat(pythonTuple(own), " = step"));
  for (const auto &[stack, symbol] : replaced) {
    std::string part = name(symbol);
    printer.line(cat(part, " = ",
                     printer.partOf(stack, printer.array(stack), own.front())));
    printer.expressions[stack] = part;
  }
  if (maySkip) {
    printer.stages->exists = name("exists");
    printer.line(cat(printer.stages->exists, " = ", own.front(), " < ",
                     printer.stages->held));
  }
  if (failed(printer.printBlock(body)))
    return failure();
  std::string yielded = takeYielded();
  SmallVector<std::string> states;
  for (const NamedExpression &update : printer.updates)
    states.push_back(update.second);
  printer.line(cat("return ", yielded, ", ", pythonTuple(states)));
  return success();
}

LogicalResult FunctionPrinter::RepeatPrinter::printFunction() {
  function = name(cat("repeat_", repeat.getIndex()));
  std::string iterations;
  if (lastIsShorter()) {
    std::string &known = printer.inSegment[repeat];
    known = name("iterations");
    iterations = cat(", ", known, "=", lengthOfSegment(file, segmented));
  }
  printer.line(cat("def ", function, "(carried, step", iterations, "):"));
  others = std::move(printer.updates);
  printer.updates.clear();
  ++printer.indent;
  LogicalResult printed = printBody();
  --printer.indent;
  for (Value stack : scanned)
    printer.narrowed[stack].pop_back();
  return printed;
}

/// The expressions with which the next iteration begins.
std::string FunctionPrinter::RepeatPrinter::takeYielded() {
  SmallVector<std::string> yielded;
  for (auto [number, value] :
       llvm::enumerate(body.getTerminator()->getOperands()))
    yielded.push_back(maySkip ? cat("jnp.where(", printer.stages->exists, ", ",
                                    printer.array(value), ", ", carried[number],
                                    ")")
                              : printer.array(value));
  if (maySkip)
    printer.stages->exists.clear();
  for (Value buffer : buffers)
    yielded.push_back(printer.array(buffer));
  for (const auto &[stack, symbol] : replaced) {
    StringRef wanted = symbol;
    auto *update = llvm::find_if(printer.updates, [&](const auto &each) {
      return each.first == wanted;
    });
    std::string &whole = printer.expressions[stack];
    whole = carried[yielded.size()];
    yielded.push_back(
        printer.withPart(stack, whole, own.front(), update->second));
    printer.updates.erase(update);
  }
  return pythonTuple(yielded);
}

/// `(x_2,), (W_2,)`: what the repeat has carried, and the states that it has
/// made, one part in each iteration.
std::string FunctionPrinter::RepeatPrinter::nameResults() {
  SmallVector<std::string> results, states;
  SmallVector<Value> made(repeat.getResults());
  llvm::append_range(made, buffers);
  for (auto [number, result] : llvm::enumerate(made)) {
    results.push_back(name(wanted[number]));
    printer.expressions[result] = results.back();
  }
  for (const std::string &symbol : llvm::make_second_range(replaced)) {
    results.push_back(name(symbol));
    others.push_back({symbol, results.back()});
  }
  for (const std::string &symbol : make_first_range(printer.updates)) {
    states.push_back(name(symbol));
    others.push_back({symbol, states.back()});
  }
  printer.updates = std::move(others);
  return cat(pythonTuple(results), ", ", pythonTuple(states));
}

std::string
FunctionPrinter::RepeatPrinter::scan(const std::string &from,
                                     const std::string &iterations) {
  SmallVector<std::string> steps(stacks);
  if (hasNumber)
    steps.insert(steps.begin(), numbers(iterations));
  return cat("lax.scan(", function, ", ", from, ", ", pythonTuple(steps),
             ", length=", iterations,
             repeat.getReverse() ? ", reverse=True" : "", ")");
}

/// The last segment has its own number of iterations. It runs first where the
/// others run in reverse.
void FunctionPrinter::RepeatPrinter::printSegments(const std::string &results) {
  auto restOf = [](shd::RepeatOp form) {
    std::optional<shd::Segments> segments = shd::segmentsOf(form);
    return segments->length - segments->shortage();
  };
  auto small = cast<shd::RepeatOp>(file.small.lookup(segmented));
  std::string rest =
      file.sizes.number(cat(segmented.getIndex(), ".segment.last"),
                        restOf(segmented), restOf(small));
  std::string full = cat(count, " - 1");
  std::string type = file.type(IntegerType::get(repeat.getContext(), 32));
  auto last = [&](const std::string &from) {
    return cat(function, "(", from, ", (jnp.array(", full, ", ", type, "),), ",
               rest, ")");
  };
  std::string start = pythonTuple(inits), between = name("segments");
  bool lastIsFirst = repeat.getReverse();
  printer.line(
      cat(between, ", () = ", lastIsFirst ? last(start) : scan(start, full)));
  printer.line(
      cat(results, " = ", lastIsFirst ? scan(between, full) : last(between)));
}

LogicalResult
FunctionPrinter::RepeatPrinter::print(ArrayRef<std::string> from) {
  findCarried(from);
  scanned = findScanned();
  findReplaced();
  findOwn();
  if (failed(printFunction()))
    return failure();
  std::string results = nameResults();
  if (lastIsShorter())
    printSegments(results);
  else
    printer.line(cat(results, " = ", scan(pythonTuple(inits), count)));
  return success();
}

LogicalResult FunctionPrinter::printRepeat(shd::RepeatOp repeat,
                                           ArrayRef<std::string> from) {
  return RepeatPrinter(*this, repeat).print(from);
}
