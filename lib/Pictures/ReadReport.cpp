//===- ReadReport.cpp - The JSON report as it is read back ----------------===//

#include "ReadReport.h"
#include "shardc/Pictures/Pictures.h"
#include "shardc/Support/Json.h"

using namespace llvm;
using namespace shardc;

static Error failedTo(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

Expected<json::Object> shardc::readReport(StringRef text) {
  Expected<json::Value> value = parseJson(text);
  if (!value)
    return failedTo("invalid JSON: " + toString(value.takeError()));
  json::Object *object = value->getAsObject();
  if (!object || !stringIn(*object, "schema").starts_with("shardc."))
    return failedTo("expected a JSON report of shardc, found no 'schema' of "
                    "one");
  return std::move(*object);
}

bool shardc::isJsonReport(StringRef text) {
  Expected<json::Object> report = readReport(text);
  if (report)
    return true;
  consumeError(report.takeError());
  return false;
}

Expected<json::Object> shardc::readPlanReport(StringRef text,
                                              StringRef option) {
  Expected<json::Object> report = readReport(text);
  if (!report)
    return report.takeError();
  StringRef schema = stringIn(*report, "schema");
  if (schema != kPlanSchema)
    return failedTo(option + " expects the report of one plan ('" +
                    kPlanSchema + "'), found '" + schema + "'");
  return report;
}

std::vector<const json::Object *> shardc::objectsIn(const json::Object &in,
                                                    StringRef key) {
  std::vector<const json::Object *> objects;
  if (const json::Array *array = in.getArray(key))
    for (const json::Value &value : *array)
      if (const json::Object *object = value.getAsObject())
        objects.push_back(object);
  return objects;
}

StringRef shardc::stringIn(const json::Object &in, StringRef key) {
  return in.getString(key).value_or("");
}

double shardc::numberIn(const json::Object &in, StringRef key) {
  return in.getNumber(key).value_or(0);
}

int64_t shardc::integerIn(const json::Object &in, StringRef key) {
  return in.getInteger(key).value_or(0);
}

std::vector<std::string> shardc::stringsIn(const json::Object &in,
                                           StringRef key) {
  std::vector<std::string> strings;
  if (const json::Array *array = in.getArray(key))
    for (const json::Value &value : *array)
      if (std::optional<StringRef> text = value.getAsString())
        strings.push_back(text->str());
  return strings;
}
