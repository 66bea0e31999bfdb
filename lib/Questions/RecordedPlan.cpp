//===- RecordedPlan.cpp - A plan as a report has it -----------------------===//

#include "RecordedPlan.h"
#include "shardc/Cost/Saturating.h"
#include "shardc/Report/Seconds.h"
#include "llvm/ADT/StringExtras.h"
#include <nlohmann/json.hpp>

using namespace shardc;
using llvm::StringRef;
using Json = nlohmann::ordered_json;

static std::string shapeText(StringRef name, llvm::ArrayRef<int64_t> shape) {
  std::vector<std::string> sizes;
  for (int64_t size : shape)
    sizes.push_back(std::to_string(size));
  return name.str() + "[" + llvm::join(sizes, ", ") + "]";
}

//===----------------------------------------------------------------------===//
// From a report
//===----------------------------------------------------------------------===//

RecordedPlan shardc::recordOf(const Report &report) {
  RecordedPlan plan;
  plan.file = report.file;
  plan.hardware = shapeText(report.hardware.name, report.hardware.shape);
  std::vector<std::string> axes;
  for (const Report::Axis &axis : report.mesh)
    axes.push_back(axis.name + "=" + std::to_string(axis.size));
  plan.mesh = "[" + llvm::join(axes, ", ") + "]";
  plan.status = report.plan.status;
  plan.fits = report.fits();
  plan.upper = wholePicoseconds(report.time.upper);
  plan.scheduled = wholePicoseconds(report.time.scheduled);
  plan.peak = report.memory.peak;
  plan.tensors = report.tensors;
  for (const ReportItem &item : report.items) {
    RecordedOp op{item.name, "", item.loc, item.total, item.total, false};
    if (const ReportCollective *moved = item.collective()) {
      op.name = moved->operand;
      op.what = item.kind + " " + llvm::join(moved->axes, ",");
      op.exposed = moved->exposed;
      op.isCollective = true;
    } else {
      op.what =
          functionsText({}, item.compute()->function, item.compute()->fused);
    }
    plan.ops.push_back(std::move(op));
  }
  return plan;
}

//===----------------------------------------------------------------------===//
// From its JSON
//===----------------------------------------------------------------------===//

namespace {

/// Takes members out of objects, and remembers the first that is not there as
/// expected.
class RecordReader {
public:
  explicit RecordReader(std::string &error) : error(error) {}

  RecordedPlan read(const Json &report);

private:
  const Json &member(const Json &object, const char *key);
  std::string text(const Json &object, const char *key);
  double number(const Json &object, const char *key);
  int64_t integer(const Json &object, const char *key);
  const Json &list(const Json &object, const char *key);
  std::vector<std::string> texts(const Json &object, const char *key);
  void wrong(const char *key, StringRef expected);

  ReportTensor tensor(const Json &object);
  RecordedOp op(const Json &object);

  std::string &error;
  const Json nothing = Json();
  const Json emptyList = Json::array();
};

} // namespace

void RecordReader::wrong(const char *key, StringRef expected) {
  if (error.empty())
    error = ("expected '" + llvm::Twine(key) + "' to be " + expected).str();
}

const Json &RecordReader::member(const Json &object, const char *key) {
  if (object.is_object())
    if (auto it = object.find(key); it != object.end())
      return *it;
  return nothing;
}

std::string RecordReader::text(const Json &object, const char *key) {
  const Json &value = member(object, key);
  if (const auto *text = value.get_ptr<const std::string *>())
    return *text;
  wrong(key, "a string");
  return "";
}

double RecordReader::number(const Json &object, const char *key) {
  const Json &value = member(object, key);
  // Larger numbers are no times or sizes of a report.
  constexpr double kMost = 1e18;
  if (value.is_number())
    if (double number = value.get<double>();
        std::isfinite(number) && std::abs(number) < kMost)
      return number;
  wrong(key, "a number");
  return 0;
}

int64_t RecordReader::integer(const Json &object, const char *key) {
  return std::llround(number(object, key));
}

const Json &RecordReader::list(const Json &object, const char *key) {
  const Json &value = member(object, key);
  if (value.is_array())
    return value;
  wrong(key, "a list");
  return emptyList;
}

std::vector<std::string> RecordReader::texts(const Json &object,
                                             const char *key) {
  std::vector<std::string> result;
  for (const Json &each : list(object, key))
    if (const auto *text = each.get_ptr<const std::string *>())
      result.push_back(*text);
    else
      wrong(key, "a list of strings");
  return result;
}

ReportTensor RecordReader::tensor(const Json &object) {
  ReportTensor tensor;
  tensor.name = text(object, "name");
  tensor.kind = text(object, "kind");
  for (const Json &dim : list(object, "dims"))
    tensor.dims.push_back(
        {text(dim, "index"), integer(dim, "size"), texts(dim, "axes")});
  tensor.partial = texts(object, "partial");
  tensor.sharding = text(object, "sharding");
  tensor.loc = text(object, "loc");
  return tensor;
}

RecordedOp RecordReader::op(const Json &object) {
  RecordedOp op;
  op.isCollective = object.is_object() && object.contains("operand");
  op.name = text(object, op.isCollective ? "operand" : "name");
  op.loc = text(object, "loc");
  double seconds = number(object, "time_s");
  if (seconds * 1e12 >= double(int64_t(1) << 60))
    wrong("time_s", "less than 2^60 picoseconds");
  else
    op.total =
        saturatingMultiply(wholePicoseconds(seconds), integer(object, "count"));
  op.exposed = op.total;
  if (op.isCollective) {
    op.what =
        text(object, "kind") + " " + llvm::join(texts(object, "axes"), ",");
    op.exposed =
        wholePicoseconds(std::min(number(object, "exposed_total_s"), 1e6));
  } else {
    op.what =
        functionsText({}, text(object, "function"), texts(object, "fused"));
  }
  return op;
}

RecordedPlan RecordReader::read(const Json &report) {
  RecordedPlan plan;
  plan.file = text(report, "file");
  const Json &hardware = member(report, "hardware");
  llvm::SmallVector<int64_t, 4> shape;
  for (const Json &size : list(hardware, "shape"))
    shape.push_back(size.is_number_integer() ? size.get<int64_t>() : 0);
  plan.hardware = shapeText(text(hardware, "name"), shape);
  std::vector<std::string> axes;
  for (const Json &axis : list(member(report, "mesh"), "axes"))
    axes.push_back(text(axis, "name") + "=" +
                   std::to_string(integer(axis, "size")));
  plan.mesh = "[" + llvm::join(axes, ", ") + "]";
  plan.status = text(member(report, "plan"), "status");
  const Json &memory = member(report, "memory");
  const Json &fits = member(memory, "fits");
  if (!fits.is_boolean())
    wrong("fits", "true or false");
  plan.fits = fits == true && plan.status != "infeasible";
  plan.peak = integer(memory, "peak");
  const Json &time = member(report, "time");
  plan.upper = wholePicoseconds(std::min(number(time, "upper_s"), 1e6));
  plan.scheduled = wholePicoseconds(std::min(number(time, "scheduled_s"), 1e6));
  for (const Json &each : list(report, "tensors"))
    plan.tensors.push_back(tensor(each));
  for (const Json &each : list(report, "ops"))
    plan.ops.push_back(op(each));
  return plan;
}

std::optional<RecordedPlan> shardc::readRecord(StringRef json,
                                               std::string &error) {
  error.clear();
  Json report = Json::parse(json.begin(), json.end(), /*cb=*/nullptr,
                            /*allow_exceptions=*/false);
  if (report.is_discarded()) {
    error = "expected JSON, as --emit-json prints it";
    return std::nullopt;
  }
  const Json *schema = report.is_object() && report.contains("schema")
                           ? &report["schema"]
                           : nullptr;
  if (!schema || *schema != "shardc.cost/1") {
    error = "expected a recorded report of schema 'shardc.cost/1', as "
            "--emit-json prints it, or a program";
    if (schema && schema->is_string())
      error += ", found '" + schema->get<std::string>() + "'";
    else if (report.is_object() && report.contains("model_type"))
      error += ", found a checkpoint's config, of which --emit-program makes a "
               "program";
    return std::nullopt;
  }
  RecordedPlan plan = RecordReader(error).read(report);
  if (!error.empty())
    return std::nullopt;
  return plan;
}
