//===- Import.cpp - From the text of a config to that of a program --------===//

#include "shardc/Import/Import.h"
#include "Families.h"
#include "shardc/Support/Json.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace shardc::import {

/// What is wrong with a text that is no JSON, and where.
static ConfigMessage parseError(StringRef text, Error error) {
  ConfigMessage message{"", 0};
  handleAllErrors(std::move(error), [&](const json::ParseError &e) {
    std::string said;
    raw_string_ostream(said) << e.message();
    StringRef words = said;
    // [line:column, byte=N]: the message has what we need in front of it.
    size_t at = words.find("byte=");
    if (at != StringRef::npos)
      (void)words.drop_front(at + 5).take_while(isDigit).getAsInteger(
          10, message.offset);
    size_t end = words.find("]: ");
    message.text = end == StringRef::npos ? words : words.drop_front(end + 3);
    if (!message.text.empty())
      message.text.front() = toLower(message.text.front());
    message.text = "not JSON: " + message.text;
  });
  message.offset = std::min(message.offset, text.size());
  return message;
}

/// The options with what a model makes of those that are not given.
static ImportOptions resolve(ImportOptions options, const Model &model,
                             Config &config) {
  int64_t longest = model.positions;
  if (model.image && options.sequence)
    config.error("image_size", "'image_size' and 'patch_size' make " +
                                   Twine(model.image->tokens()) +
                                   " tokens; --sequence has no effect on them");
  if (!options.sequence)
    options.sequence = longest ? std::min<int64_t>(4096, longest) : 4096;
  int64_t sequence = *options.sequence;
  StringRef key = model.positionsKey;
  if (longest && sequence > longest)
    config.error(key, "'" + key + "' has fewer positions than the " +
                          Twine(sequence) + " of --sequence");
  if (!options.generate)
    options.generate = std::max<int64_t>(sequence / 8, 1);
  if (options.task == Task::Serve && *options.generate >= sequence)
    config.error("", "--generate=" + Twine(*options.generate) +
                         " leaves no prompt of the " + Twine(sequence) +
                         " tokens of --sequence");
  return options;
}

ImportResult importConfig(StringRef text, const ImportOptions &options) {
  ImportResult result;
  auto fail = [&](const Twine &message, size_t offset) {
    result.errors.push_back(messageAt(message, offset));
    return result;
  };
  Expected<json::Value> value = parseJson(text);
  if (!value) {
    result.errors.push_back(parseError(text, value.takeError()));
    return result;
  }
  const json::Object *object = value->getAsObject();
  if (!object)
    return fail("a config is a JSON object", 0);
  Config outer(text, 0, *object, *object);
  const json::Object *nested = object->getObject("text_config");
  std::string family =
      (nested ? nested : object)->getString("model_type").value_or("").str();
  if (family.empty())
    family = object->getString("model_type").value_or("").str();
  if (family.empty())
    return fail("'model_type' expects the name of a family, as in the config "
                "of a checkpoint",
                outer.offsetOf("model_type"));
  std::string why;
  std::optional<json::Object> defaults = familyDefaults(family, why);
  if (!defaults)
    return fail(why, outer.offsetOf("model_type"));
  // Keys in front of the nested object, such as torch_dtype, hold for it too.
  json::Object merged = std::move(*defaults);
  if (nested)
    for (StringRef key : {"torch_dtype", "dtype", "quantization_config",
                          "tie_word_embeddings", "_name_or_path"})
      if (const json::Value *each = object->get(key))
        merged[key] = *each;
  Config config(text, nested ? outer.offsetOf("text_config") : 0,
                nested ? *nested : *object, merged);
  Model model = readModel(config, family, options.task);
  ImportOptions resolved = resolve(options, model, config);
  result.errors = config.errors;
  result.warnings = config.unknownKeys();
  if (!result.errors.empty())
    return result;
  result.program = writeProgram(model, resolved);
  if (!result.program)
    return fail("the model has more parameters than 2^63", config.offsetOf(""));
  return result;
}

} // namespace shardc::import
