//===- Tensors.cpp - The tensors of a planned program ---------------------===//

#include "Collect.h"
#include "Names.h"
#include "shardc/Dialect/Shd/IR/Explicit.h"
#include "shardc/Dialect/Shd/IR/Host.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

namespace {

class TensorCollector {
public:
  TensorCollector(const Mesh &mesh, Report &report)
      : mesh(mesh), report(report) {}

  void visit(Operation *op);

private:
  void addDeclared(DeclareOp declare);
  void addOutput(OutputOp output);
  void addNamed(Value value);
  ReportTensor describe(std::string name, llvm::StringRef kind, Value value,
                        llvm::ArrayRef<std::string> indices, Location loc);

  const Mesh &mesh;
  Report &report;
};

/// True if the value, as stored, leaves the program under this name: the
/// output's entry then stands for both.
bool isOutputOfItsName(Value stored, llvm::StringRef name) {
  return llvm::any_of(stored.getUsers(), [&](Operation *user) {
    auto output = dyn_cast<OutputOp>(user);
    return output && output.getSym() == name;
  });
}

ReportTensor TensorCollector::describe(std::string name, llvm::StringRef kind,
                                       Value value,
                                       llvm::ArrayRef<std::string> names,
                                       Location loc) {
  auto type = cast<RankedTensorType>(value.getType());
  Layout layout = explicitLayout(mesh, type);
  llvm::SmallVector<std::string, 4> indices(names);
  indices.resize(type.getRank(), "_");

  ReportTensor tensor;
  tensor.name = std::move(name);
  tensor.kind = kind.str();
  tensor.dtype = typeName(type.getElementType()).str();
  for (auto [index, size, axes] :
       llvm::zip_equal(indices, type.getShape(), layout.dims)) {
    ReportTensor::Dim dim{index, size, {}};
    for (AxisIndex axis : axes)
      dim.axes.push_back(mesh.axes[axis].name);
    tensor.dims.push_back(std::move(dim));
  }
  for (AxisIndex axis = 0; axis < mesh.size(); ++axis)
    if (layout.partial & axisBit(axis))
      tensor.partial.push_back(mesh.axes[axis].name);
  tensor.sharding = notation(mesh, layout, indices);
  TensorShape shape = tensorShape(type);
  tensor.globalBytes = shape.globalBytes();
  tensor.localBytes = shape.localBytes(mesh, layout);
  tensor.isOnHost = isOnHost(value);
  tensor.loc = locationText(loc);
  return tensor;
}

void TensorCollector::addDeclared(DeclareOp declare) {
  ReportTensor tensor = describe(
      declare.getSym().str(), stringifyTensorKind(declare.getKind()),
      declare.getResult(), indexNames(declare.getResult()), declare.getLoc());
  if (declare.getOf())
    tensor.of = declare.getOf()->str();
  else if (declare.getKind() == TensorKind::Saved)
    tensor.of = tensor.name;
  if (declare.isParameter()) {
    int64_t elements = 1;
    for (const ReportTensor::Dim &dim : tensor.dims)
      elements = saturatingMultiply(elements, dim.size);
    report.parameters = saturatingAdd(report.parameters, elements);
    if (updateOf(declare))
      report.trainedParameters =
          saturatingAdd(report.trainedParameters, elements);
  }
  report.tensors.push_back(std::move(tensor));
}

void TensorCollector::addOutput(OutputOp output) {
  report.tensors.push_back(
      describe(output.getSym().str(), "output", output.getValue(),
               operandIndexNames(output.getValueMutable()), output.getLoc()));
}

void TensorCollector::addNamed(Value value) {
  Value stored = storedValue(value);
  std::string name = getResultName(value).str();
  if (isOutputOfItsName(stored, name))
    return;
  report.tensors.push_back(describe(std::move(name), "activation", stored,
                                    indexNames(value), value.getLoc()));
}

void TensorCollector::visit(Operation *op) {
  if (DeclareOp declare = introducedBy(op))
    return addDeclared(declare);
  if (auto output = dyn_cast<OutputOp>(op))
    return addOutput(output);
  if (op->hasAttr(kTemporary) || op->hasAttr(kCopy))
    return;
  for (Value result : op->getResults())
    if (!getResultName(result).empty())
      addNamed(result);
}

} // namespace

void shardc::collectTensors(ProgramOp program, const Mesh &mesh,
                            Report &report) {
  TensorCollector collector(mesh, report);
  program->walk<WalkOrder::PreOrder>(
      [&](Operation *op) { collector.visit(op); });
}
