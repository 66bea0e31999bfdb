//===- Import.cpp - From the text of a config to that of a program --------===//

#include "shardc/Import/Import.h"
#include "Families.h"
#include "shardc/Machine/Machine.h"
#include "shardc/Support/Json.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace shardc::import {

/// What is wrong with a text that is no JSON, and where.
static ConfigMessage parseError(StringRef text, Error error) {
  ConfigMessage message;
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

namespace {

/// How well the keys of a config are those of a family.
struct FamilyFit {
  FamilyFit(StringRef family, const Config &config)
      : family(family), known(config.countKnownKeys()),
        missing(config.missing) {
    for (StringRef key : config.unknownKeys())
      unknown.push_back(key.str());
  }

  int64_t score() const {
    return int64_t(known) - int64_t(missing.size() + unknown.size());
  }

  StringRef family;
  size_t known;
  std::vector<std::string> missing, unknown;
};

} // namespace

/// "'a', 'b' and 3 others".
static std::string quotedKeys(ArrayRef<std::string> keys) {
  constexpr size_t most = 6;
  std::string text;
  for (const std::string &key : keys.take_front(most))
    text += (text.empty() ? "'" : ", '") + printable(key, 40) + "'";
  if (keys.size() > most)
    text += " and " + std::to_string(keys.size() - most) + " more";
  return text;
}

/// The family that a misspelt name means; empty if it is another name.
static StringRef likelyFamily(StringRef name) {
  std::string small = name.lower();
  std::vector<StringRef> names = familyNames();
  // A prefix wins among names that are equally far: deepseek_v32.
  auto isPrefix = [&](StringRef family) {
    return StringRef(small).starts_with(family);
  };
  llvm::stable_sort(names, [&](StringRef a, StringRef b) {
    return isPrefix(a) > isPrefix(b);
  });
  // A short name is one edit away from others that mean other models: opt, mpt.
  unsigned limit = small.size() / 4;
  return limit ? nearestName(small, names, limit) : StringRef();
}

/// The error of a family that is not read. It names the nearest family: by the
/// name, else by the keys where most of them are that family's. Its notes say
/// which keys the config would lack, and which would have no effect.
static ConfigMessage unknownFamily(StringRef name, size_t offset,
                                   function_ref<FamilyFit(StringRef)> fitOf) {
  std::string text = ("model_type '" + name + "' is not read").str();
  std::optional<FamilyFit> best;
  if (StringRef likely = likelyFamily(name); !likely.empty()) {
    best = fitOf(likely);
    text += ("; the nearest family is '" + likely + "'").str();
  } else {
    for (StringRef family : familyNames())
      if (FamilyFit fit = fitOf(family);
          fit.score() > (best ? best->score() : 0))
        best = fit;
    if (best)
      text +=
          ("; the nearest family by its keys is '" + best->family + "'").str();
  }
  ConfigMessage message = messageAt(text, offset);
  if (best) {
    std::string as = ("as '" + best->family + "', ").str();
    if (!best->missing.empty())
      message.notes.push_back(as + "the config lacks " +
                              quotedKeys(best->missing));
    if (!best->unknown.empty())
      message.notes.push_back(
          as + "these keys would have no effect: " + quotedKeys(best->unknown));
    if (best->missing.empty())
      message.notes.push_back(
          "if the layers are those of '" + best->family.str() +
          "', write \"model_type\": \"" + best->family.str() + "\"");
  }
  message.notes.push_back("the families are " + join(familyNames(), ", "));
  return message;
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
  const json::Object *nested = outer.fields("text_config");
  if (outer.hasErrors()) {
    result.errors = outer.errors;
    return result;
  }
  // Keys in front of the nested object, such as torch_dtype, hold for it too.
  auto configWith = [&](json::Object &defaults) {
    if (nested)
      for (StringRef key : {"torch_dtype", "dtype", "quantization_config",
                            "tie_word_embeddings", "_name_or_path"})
        if (const json::Value *each = object->get(key))
          defaults[key] = *each;
    return Config(text, nested ? outer.offsetOf("text_config") : 0,
                  nested ? *nested : *object, defaults);
  };
  json::Object none;
  StringRef key = "model_type";
  bool isInner = nested && !nested->getString(key).value_or("").empty();
  size_t offset =
      isInner ? configWith(none).offsetOf(key) : outer.offsetOf(key);
  std::string family =
      (isInner ? nested : object)->getString(key).value_or("").str();
  if (family.empty())
    return fail("'model_type' expects the name of a family, as in the config "
                "of a checkpoint",
                offset);
  std::optional<json::Object> defaults = familyDefaults(family);
  if (!defaults) {
    auto fitOf = [&](StringRef name) {
      json::Object defaults = *familyDefaults(name);
      Config config = configWith(defaults);
      readModel(config, name, options.task);
      return FamilyFit(name, config);
    };
    result.errors.push_back(unknownFamily(family, offset, fitOf));
    return result;
  }
  Config config = configWith(*defaults);
  Model model = readModel(config, family, options.task);
  ImportOptions resolved = resolve(options, model, config);
  result.errors = config.errors;
  result.warnings = config.unknownKeyWarnings();
  if (!result.errors.empty())
    return result;
  result.program = writeProgram(model, resolved);
  if (!result.program)
    return fail("the model has more parameters than 2^63", config.offsetOf(""));
  return result;
}

} // namespace shardc::import
