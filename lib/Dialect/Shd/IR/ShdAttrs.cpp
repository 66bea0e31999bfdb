//===- ShdAttrs.cpp - Attributes of the shd dialect -----------------------===//
//
// Parsers, printers and verifiers. Names that are not identifiers are printed
// as strings; numbers are printed so that they read back exactly.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "shardc/Dialect/Shd/IR/Shd.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include <charconv>
#include <cmath>

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

#include "shardc/Dialect/Shd/IR/ShdEnums.cpp.inc"

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

using Delimiter = AsmParser::Delimiter;

static ParseResult parseName(AsmParser &parser, StringAttr &name) {
  std::string text;
  if (parser.parseKeywordOrString(&text))
    return failure();
  name = StringAttr::get(parser.getContext(), text);
  return success();
}

static ParseResult parseNames(AsmParser &parser, Delimiter delimiter,
                              SmallVectorImpl<StringAttr> &names) {
  return parser.parseCommaSeparatedList(
      delimiter, [&] { return parseName(parser, names.emplace_back()); });
}

static void printNames(AsmPrinter &printer, ArrayRef<StringAttr> names) {
  llvm::interleaveComma(names, printer, [&](StringAttr name) {
    printer.printKeywordOrString(name);
  });
}

/// Names in brackets.
static FailureOr<SmallVector<StringAttr>> parseNameList(AsmParser &parser) {
  SmallVector<StringAttr> names;
  if (parseNames(parser, Delimiter::Square, names))
    return failure();
  return names;
}

static void printNameList(AsmPrinter &printer, ArrayRef<StringAttr> names) {
  printer << '[';
  printNames(printer, names);
  printer << ']';
}

#define GET_ATTRDEF_CLASSES
#include "shardc/Dialect/Shd/IR/ShdAttrs.cpp.inc"

void ShdDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "shardc/Dialect/Shd/IR/ShdAttrs.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

/// `key = value` of a real number.
static ParseResult parseField(AsmParser &parser, StringRef key, double &value) {
  return failure(parser.parseKeyword(key) || parser.parseEqual() ||
                 parser.parseFloat(value));
}

/// The shortest decimal that reads back as `value`, with the point that MLIR's
/// lexer needs: `1.0e+06`.
static std::string shortestDecimal(double value) {
  char digits[32];
  std::to_chars_result result =
      std::to_chars(std::begin(digits), std::end(digits), value,
                    std::chars_format::scientific);
  std::string text(std::begin(digits), result.ptr);
  if (text.find('.') == std::string::npos)
    text.insert(text.find('e'), ".0");
  return text;
}

static void printReal(AsmPrinter &printer, double value) {
  if (std::isfinite(value))
    printer << shortestDecimal(value);
  else
    printer.printFloat(llvm::APFloat(value));
}

static void printField(AsmPrinter &printer, StringRef key, double value) {
  printer << key << " = ";
  printReal(printer, value);
}

/// Calibrated terms of a price: always three.
static ParseResult parseCalibrated(AsmParser &parser,
                                   DenseF64ArrayAttr &calibrated) {
  SmallVector<double, 3> terms;
  llvm::SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword("calibrated_s") || parser.parseEqual() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        return parser.parseFloat(terms.emplace_back());
      }))
    return failure();
  if (terms.size() != 3)
    return parser.emitError(loc)
           << "calibrated_s has three terms, but found " << terms.size();
  calibrated = DenseF64ArrayAttr::get(parser.getContext(), terms);
  return success();
}

/// `host = [...]`: the six terms of HostCost.
static ParseResult parseHost(AsmParser &parser, DenseF64ArrayAttr &host) {
  constexpr size_t kTerms = 6;
  SmallVector<double, kTerms> terms;
  llvm::SMLoc loc = parser.getCurrentLocation();
  if (parser.parseEqual() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        return parser.parseFloat(terms.emplace_back());
      }))
    return failure();
  if (terms.size() != kTerms)
    return parser.emitError(loc)
           << "host has six terms, but found " << terms.size();
  host = DenseF64ArrayAttr::get(parser.getContext(), terms);
  return success();
}

static void printHost(AsmPrinter &printer, DenseF64ArrayAttr host) {
  if (!host)
    return;
  printer << ", host = [";
  llvm::interleaveComma(host.asArrayRef(), printer,
                        [&](double term) { printReal(printer, term); });
  printer << "]";
}

static void printCalibrated(AsmPrinter &printer, DenseF64ArrayAttr calibrated) {
  if (!calibrated)
    return;
  printer << ", calibrated_s = [";
  llvm::interleaveComma(calibrated.asArrayRef(), printer,
                        [&](double term) { printReal(printer, term); });
  printer << "]";
}

static LogicalResult
verifyDistinct(function_ref<InFlightDiagnostic()> emitError, StringRef what,
               ArrayRef<StringRef> names) {
  llvm::SmallSet<StringRef, 8> seen;
  for (StringRef name : names)
    if (!seen.insert(name).second)
      return emitError() << "axis '" << name << "' appears twice in " << what;
  return success();
}

//===----------------------------------------------------------------------===//
// Mesh
//===----------------------------------------------------------------------===//

/// `X = 4`, `X = 4 on (y, z)`, `pp = 4 stages`.
static ParseResult parseAxis(AsmParser &parser, MeshAxisAttr &axis) {
  SMLoc location = parser.getCurrentLocation();
  std::string name;
  int64_t size = 1;
  SmallVector<StringAttr> on;
  if (parser.parseKeywordOrString(&name) || parser.parseEqual() ||
      parser.parseInteger(size))
    return failure();
  bool isStages = succeeded(parser.parseOptionalKeyword("stages"));
  if (succeeded(parser.parseOptionalKeyword("on")) &&
      parseNames(parser, Delimiter::Paren, on))
    return failure();
  axis = parser.getChecked<MeshAxisAttr>(location, parser.getContext(), name,
                                         size, on, isStages);
  return success(axis != nullptr);
}

static void printAxis(AsmPrinter &printer, MeshAxisAttr axis) {
  printer.printKeywordOrString(axis.getName());
  printer << " = " << axis.getSize();
  if (axis.getStages())
    printer << " stages";
  if (axis.getOn().empty())
    return;
  printer << " on (";
  printNames(printer, axis.getOn());
  printer << ")";
}

Attribute MeshAxisAttr::parse(AsmParser &parser, Type) {
  MeshAxisAttr axis;
  if (parser.parseLess() || parseAxis(parser, axis) || parser.parseGreater())
    return {};
  return axis;
}

void MeshAxisAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printAxis(printer, *this);
  printer << ">";
}

LogicalResult MeshAxisAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   StringRef name, int64_t size,
                                   ArrayRef<StringAttr>, bool) {
  // A1
  if (size < 1)
    return emitError() << "axis '" << name
                       << "' must have a size of at least 1, but has " << size;
  // A2
  if (name.empty())
    return emitError() << "a mesh axis must have a name";
  return success();
}

LogicalResult PipelineAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   StringRef, StringRef index, int64_t layers,
                                   int64_t held, StringRef) {
  // S1
  if (layers < 1 || held < 0 || held > layers)
    return emitError() << "a stage cannot hold " << held << " of the " << layers
                       << " layers of '" << index << "'";
  return success();
}

static constexpr std::pair<StageRole, StringLiteral> kRoleNames[] = {
    {FirstRole, "first"}, {LayerRole, "layers"}, {LastRole, "last"}};

Attribute StageAttr::parse(AsmParser &parser, Type) {
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseLess())
    return {};
  unsigned roles = NoRole;
  for (auto [role, name] : kRoleNames)
    if (succeeded(parser.parseOptionalKeyword(name)))
      roles |= role;
  FailureOr<StagePass> pass = failure();
  if (parser.parseColon() ||
      failed(pass = FieldParser<StagePass>::parse(parser)))
    return {};
  bool isPartial = succeeded(parser.parseOptionalKeyword("partial"));
  if (parser.parseGreater())
    return {};
  return parser.getChecked<StageAttr>(location, parser.getContext(), roles,
                                      *pass, isPartial);
}

void StageAttr::print(AsmPrinter &printer) const {
  printer << "<";
  for (auto [role, name] : kRoleNames)
    if (getRoles() & role)
      printer << name << " ";
  printer << ": " << stringifyStagePass(getPass())
          << (getPartial() ? " partial>" : ">");
}

LogicalResult StageAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                unsigned roles, StagePass, bool) {
  // G1
  if (roles == NoRole || (roles & ~kAllRoles))
    return emitError() << "at least one stage must have an operation";
  return success();
}

Attribute MeshAttr::parse(AsmParser &parser, Type) {
  SMLoc location = parser.getCurrentLocation();
  SmallVector<MeshAxisAttr> axes;
  if (parser.parseLess() ||
      parser.parseCommaSeparatedList(
          Delimiter::Square,
          [&] { return parseAxis(parser, axes.emplace_back()); }) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<MeshAttr>(location, parser.getContext(), axes);
}

void MeshAttr::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(getAxes(), printer,
                        [&](MeshAxisAttr axis) { printAxis(printer, axis); });
  printer << "]>";
}

LogicalResult MeshAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<MeshAxisAttr> axes) {
  // M2
  if (axes.size() > kMaxMeshAxes)
    return emitError() << "a mesh may have at most " << kMaxMeshAxes
                       << " axes, but has " << axes.size();
  // M1
  return verifyDistinct(emitError, "the mesh",
                        llvm::map_to_vector(axes, [](MeshAxisAttr axis) {
                          return axis.getName();
                        }));
}

//===----------------------------------------------------------------------===//
// Shardings
//===----------------------------------------------------------------------===//

/// `{X, Y}`, `{}` or `{?}`.
static ParseResult parseDim(AsmParser &parser, DimShardingAttr &dim) {
  SmallVector<StringAttr> axes;
  bool isOpen = false;
  auto parseEntry = [&]() -> ParseResult {
    if (axes.empty() && succeeded(parser.parseOptionalQuestion())) {
      isOpen = true;
      return success();
    }
    if (isOpen)
      return parser.emitError(parser.getCurrentLocation(),
                              "an open dimension may not name axes");
    return parseName(parser, axes.emplace_back());
  };
  if (parser.parseCommaSeparatedList(Delimiter::Braces, parseEntry))
    return failure();
  dim = DimShardingAttr::get(parser.getContext(), axes, isOpen);
  return success();
}

static void printDim(AsmPrinter &printer, DimShardingAttr dim) {
  printer << "{";
  if (dim.getIsOpen())
    printer << "?";
  printNames(printer, dim.getAxes());
  printer << "}";
}

Attribute DimShardingAttr::parse(AsmParser &parser, Type) {
  DimShardingAttr dim;
  if (parser.parseLess() || parseDim(parser, dim) || parser.parseGreater())
    return {};
  return dim;
}

void DimShardingAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printDim(printer, *this);
  printer << ">";
}

LogicalResult
DimShardingAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                        ArrayRef<StringAttr> axes, bool isOpen) {
  if (isOpen && !axes.empty())
    return emitError() << "an open dimension may not name axes, but names "
                       << axes.front();
  return success();
}

Attribute ShardingAttr::parse(AsmParser &parser, Type) {
  SMLoc location = parser.getCurrentLocation();
  SmallVector<DimShardingAttr> dims;
  SmallVector<StringAttr> partial;
  if (parser.parseLess() ||
      parser.parseCommaSeparatedList(Delimiter::Square, [&] {
        return parseDim(parser, dims.emplace_back());
      }))
    return {};
  if (succeeded(parser.parseOptionalComma()) &&
      (parser.parseKeyword("partial") || parser.parseEqual() ||
       parseNames(parser, Delimiter::Braces, partial)))
    return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<ShardingAttr>(location, parser.getContext(), dims,
                                         partial);
}

void ShardingAttr::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(getDims(), printer,
                        [&](DimShardingAttr dim) { printDim(printer, dim); });
  printer << "]";
  if (!getPartial().empty()) {
    printer << ", partial = {";
    printNames(printer, getPartial());
    printer << "}";
  }
  printer << ">";
}

LogicalResult ShardingAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   ArrayRef<DimShardingAttr> dims,
                                   ArrayRef<StringAttr> partial) {
  SmallVector<StringRef> axes;
  for (DimShardingAttr dim : dims)
    llvm::append_range(axes, dim.getAxes());
  llvm::append_range(axes, partial);
  // S2
  return verifyDistinct(emitError, "the sharding", axes);
}

LogicalResult ShardingAttr::verifyEncoding(
    ArrayRef<int64_t> shape, Type,
    function_ref<InFlightDiagnostic()> emitError) const {
  // S1
  if (getDims().size() != shape.size())
    return emitError() << "the sharding has " << getDims().size()
                       << " dimensions, but the tensor has " << shape.size();
  // S4
  if (isOpen())
    return emitError() << "a tensor type's sharding may not have open "
                       << "dimensions";
  return success();
}

//===----------------------------------------------------------------------===//
// Indexing
//===----------------------------------------------------------------------===//

static ParseResult parseIndexLists(AsmParser &parser,
                                   SmallVectorImpl<ArrayAttr> &lists) {
  auto parseList = [&]() -> ParseResult {
    SmallVector<StringAttr> names;
    if (parseNames(parser, Delimiter::Square, names))
      return failure();
    lists.push_back(
        ArrayAttr::get(parser.getContext(),
                       SmallVector<Attribute>(names.begin(), names.end())));
    return success();
  };
  return parser.parseCommaSeparatedList(parseList);
}

Attribute IndexingAttr::parse(AsmParser &parser, Type) {
  SmallVector<ArrayAttr> operands, results;
  if (parser.parseLess())
    return {};
  if (failed(parser.parseOptionalArrow()) &&
      (parseIndexLists(parser, operands) || parser.parseArrow()))
    return {};
  if (parseIndexLists(parser, results) || parser.parseGreater())
    return {};
  return get(parser.getContext(), operands, results);
}

static void printIndexLists(AsmPrinter &printer, ArrayRef<ArrayAttr> lists) {
  llvm::interleaveComma(lists, printer, [&](ArrayAttr list) {
    printer << "[";
    llvm::interleaveComma(
        list.getAsRange<StringAttr>(), printer,
        [&](StringAttr name) { printer.printKeywordOrString(name); });
    printer << "]";
  });
}

void IndexingAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printIndexLists(printer, getOperands());
  printer << (getOperands().empty() ? "-> " : " -> ");
  printIndexLists(printer, getResults());
  printer << ">";
}

static SmallVector<StringRef, 4> indexNames(ArrayAttr list) {
  return llvm::to_vector<4>(list.getAsValueRange<StringAttr>());
}

SmallVector<StringRef, 4> IndexingAttr::getOperandIndices(unsigned i) const {
  return indexNames(getOperands()[i]);
}

SmallVector<StringRef, 4> IndexingAttr::getResultIndices(unsigned i) const {
  return indexNames(getResults()[i]);
}

//===----------------------------------------------------------------------===//
// Hardware and prices
//===----------------------------------------------------------------------===//

Attribute HardwareAttr::parse(AsmParser &parser, Type) {
  std::string name;
  SmallVector<int64_t> shape;
  if (parser.parseLess() || parser.parseString(&name) || parser.parseComma() ||
      parser.parseCommaSeparatedList(
          Delimiter::Square,
          [&] { return parser.parseInteger(shape.emplace_back()); }) ||
      parser.parseGreater())
    return {};
  return get(parser.getContext(), name, shape);
}

void HardwareAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printer.printString(getName());
  printer << ", [";
  llvm::interleaveComma(getShape(), printer);
  printer << "]>";
}

Attribute CollectiveCostAttr::parse(AsmParser &parser, Type) {
  double bytes = 0, wireBytes = 0, bandwidth = 0, latency = 0;
  SmallVector<StringAttr> networks, boundBy;
  DenseF64ArrayAttr calibrated;
  auto parseBoundBy = [&]() -> ParseResult {
    return failure(parser.parseEqual() ||
                   parseNames(parser, Delimiter::Square, boundBy));
  };
  auto parseRest = [&]() -> ParseResult {
    while (succeeded(parser.parseOptionalComma())) {
      bool isBoundBy = succeeded(parser.parseOptionalKeyword("bound_by"));
      if (isBoundBy ? parseBoundBy() : parseCalibrated(parser, calibrated))
        return failure();
    }
    return success();
  };
  if (parser.parseLess() || parseField(parser, "bytes", bytes) ||
      parser.parseComma() || parseField(parser, "wire_bytes", wireBytes) ||
      parser.parseComma() || parseField(parser, "bandwidth_s", bandwidth) ||
      parser.parseComma() || parseField(parser, "latency_s", latency) ||
      parser.parseComma() || parser.parseKeyword("networks") ||
      parser.parseEqual() || parseNames(parser, Delimiter::Square, networks) ||
      parseRest() || parser.parseGreater())
    return {};
  return get(parser.getContext(), bytes, wireBytes, bandwidth, latency,
             networks, boundBy, calibrated);
}

void CollectiveCostAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printField(printer, "bytes", getBytes());
  printer << ", ";
  printField(printer, "wire_bytes", getWireBytes());
  printer << ", ";
  printField(printer, "bandwidth_s", getBandwidthS());
  printer << ", ";
  printField(printer, "latency_s", getLatencyS());
  printer << ", networks = [";
  printNames(printer, getNetworks());
  printer << "]";
  if (!getBoundBy().empty()) {
    printer << ", bound_by = [";
    printNames(printer, getBoundBy());
    printer << "]";
  }
  printCalibrated(printer, getCalibratedS());
  printer << ">";
}

LogicalResult GroupAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                int64_t number, GroupPart) {
  // F1
  if (number < 0)
    return emitError() << "a fusion group must have a number of at least 0, "
                       << "but has " << number;
  return success();
}

LogicalResult TrainingAttr::verify(
    function_ref<InFlightDiagnostic()> emitError, StringRef, Optimizer,
    Type moments, Type master, Type gradients, Type reduce, FloatAttr,
    FloatAttr, FloatAttr, FloatAttr, FloatAttr, FloatAttr, StringAttr,
    int64_t microbatches, Remat remat, int64_t every, FloatAttr tokens,
    ArrayRef<StringAttr>, DictionaryAttr, DictionaryAttr, DictionaryAttr,
    DictionaryAttr, ArrayRef<StringAttr>, Offload, DictionaryAttr, bool) {
  // B1
  for (Type type : {moments, master, gradients, reduce})
    if (type && !hasGradient(type))
      return emitError() << type << " is no type of real numbers";
  // B2
  if (microbatches < 0 || every < 0)
    return emitError() << "counts must be at least 0";
  if ((remat == Remat::Every) != (every > 0))
    return emitError() << "every(k) needs a k of at least 1";
  if (!(tokens.getValueAsDouble() > 0))
    return emitError() << "the number of tokens must be positive";
  return success();
}

Attribute GroupCostAttr::parse(AsmParser &parser, Type) {
  double flops = 0, vectorFlops = 0, hbmBytes = 0;
  double matrix = 0, vector = 0, hbm = 0;
  DenseF64ArrayAttr host, calibrated;
  auto parseRest = [&]() -> ParseResult {
    while (succeeded(parser.parseOptionalComma()))
      if (failed(succeeded(parser.parseOptionalKeyword("host"))
                     ? parseHost(parser, host)
                     : parseCalibrated(parser, calibrated)))
        return failure();
    return success();
  };
  if (parser.parseLess() || parseField(parser, "flops", flops) ||
      parser.parseComma() || parseField(parser, "vector_flops", vectorFlops) ||
      parser.parseComma() || parseField(parser, "hbm_bytes", hbmBytes) ||
      parser.parseComma() || parseField(parser, "matrix_s", matrix) ||
      parser.parseComma() || parseField(parser, "vector_s", vector) ||
      parser.parseComma() || parseField(parser, "hbm_s", hbm) || parseRest() ||
      parser.parseGreater())
    return {};
  return get(parser.getContext(), flops, vectorFlops, hbmBytes, matrix, vector,
             hbm, host, calibrated);
}

void GroupCostAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printField(printer, "flops", getFlops());
  printer << ", ";
  printField(printer, "vector_flops", getVectorFlops());
  printer << ", ";
  printField(printer, "hbm_bytes", getHbmBytes());
  printer << ", ";
  printField(printer, "matrix_s", getMatrixS());
  printer << ", ";
  printField(printer, "vector_s", getVectorS());
  printer << ", ";
  printField(printer, "hbm_s", getHbmS());
  printHost(printer, getHost());
  printCalibrated(printer, getCalibratedS());
  printer << ">";
}
