//===- HardwareImport.cpp - The hardware declaration ----------------------===//
//
// Quantities are reduced to SI units here; which fields there are, and which
// quantity each needs, is known to lib/Machine alone.
//
//===----------------------------------------------------------------------===//

#include "HardwareImport.h"
#include "shardc/Frontend/Frontend.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace shardc;
using llvm::SMRange;
using llvm::StringRef;

using Quantity = HardwareField::Quantity;

//===----------------------------------------------------------------------===//
// Units
//===----------------------------------------------------------------------===//

namespace {
struct Unit {
  StringRef name;
  Quantity quantity;
  /// How many of it make up the SI unit: a number, so that quotients round
  /// once.
  double perBase;
  /// Whether `k`, `Mi`, ... may stand before it.
  bool prefixed;
};
struct Prefix {
  StringRef name;
  double scale;
};
} // namespace

/// Units of docs/Language.md#11-describing-a-machine.
static constexpr Unit kUnits[] = {
    {"FLOP/s", Quantity::FlopsPerSecond, 1, true},
    {"OP/s", Quantity::FlopsPerSecond, 1, true},
    {"B", Quantity::Bytes, 1, true},
    {"B/s", Quantity::BytesPerSecond, 1, true},
    {"s", Quantity::Seconds, 1, false},
    {"ms", Quantity::Seconds, 1e3, false},
    {"us", Quantity::Seconds, 1e6, false},
    {"ns", Quantity::Seconds, 1e9, false},
    {"USD/h", Quantity::UsdPerHour, 1, false},
};

static constexpr Prefix kPrefixes[] = {
    {"", 1},
    {"k", 1e3},
    {"M", 1e6},
    {"G", 1e9},
    {"T", 1e12},
    {"P", 1e15},
    {"Ki", 1024.0},
    {"Mi", 1024.0 * 1024},
    {"Gi", 1024.0 * 1024 * 1024},
    {"Ti", 1024.0 * 1024 * 1024 * 1024},
};

/// Sets the number and quantity of `field` from a number with a unit; false if
/// there is no such unit.
static bool convert(double number, StringRef unit, HardwareField &field) {
  field.number = number;
  field.quantity = Quantity::None;
  if (unit.empty())
    return true;
  for (const Unit &each : kUnits) {
    StringRef prefix = unit;
    if (!prefix.consume_back(each.name) || (!prefix.empty() && !each.prefixed))
      continue;
    for (const Prefix &candidate : kPrefixes) {
      if (candidate.name != prefix)
        continue;
      field.number = number * candidate.scale / each.perBase;
      field.quantity = each.quantity;
      return true;
    }
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Descriptions
//===----------------------------------------------------------------------===//

namespace {
/// Builds the description of one declaration. The `where` of a field is an
/// index into `ranges`.
class Describer {
public:
  explicit Describer(SourceFiles &files) : files(files) {}

  std::optional<HardwareDescription> describe(const ast::HardwareDecl &decl);
  mlir::InFlightDiagnostic report(const MachineError &error);
  unsigned where(SMRange range) {
    ranges.push_back(range);
    return ranges.size() - 1;
  }

private:
  std::vector<HardwareField>
  describe(llvm::ArrayRef<ast::HardwareFieldDecl> decls);
  std::vector<HardwareNetwork> describe(llvm::ArrayRef<ast::NetworkDecl> decls);

  SourceFiles &files;
  std::vector<SMRange> ranges;
  bool failed = false;
};
} // namespace

std::vector<HardwareField>
Describer::describe(llvm::ArrayRef<ast::HardwareFieldDecl> decls) {
  std::vector<HardwareField> fields;
  for (const ast::HardwareFieldDecl &decl : decls) {
    const ast::HardwareValue &value = decl.value;
    HardwareField &field = fields.emplace_back();
    field.name = decl.name.text;
    field.word = value.word;
    field.list.assign(value.list.begin(), value.list.end());
    field.where = where(join(decl.name.range, value.range));
    if (convert(value.number, value.unit, field))
      continue;
    failed = true;
    files.error(value.range)
            .append("unknown unit '", value.unit, "'")
            .attachNote()
        << "units are FLOP/s, OP/s, B and B/s, with k M G T P Ki Mi Gi Ti "
           "before them, and s ms us ns USD/h";
  }
  return fields;
}

std::vector<HardwareNetwork>
Describer::describe(llvm::ArrayRef<ast::NetworkDecl> decls) {
  std::vector<HardwareNetwork> networks;
  for (const ast::NetworkDecl &each : decls) {
    HardwareNetwork &network = networks.emplace_back();
    network.name = each.name.text;
    network.kind = each.kind;
    for (const ast::Name &member : each.members)
      network.members.push_back(member.text);
    network.where = where(each.name.range);
    network.fields = describe(each.fields);
  }
  return networks;
}

std::optional<HardwareDescription>
Describer::describe(const ast::HardwareDecl &decl) {
  HardwareDescription result;
  result.name = decl.name.text;
  result.where = where(decl.name.range);
  result.fields = describe(decl.fields);
  result.networks = describe(decl.networks);
  for (const ast::CalibrationDecl &each : decl.calibrations) {
    HardwareCalibration &calibration = result.calibrations.emplace_back();
    calibration.where = where(each.range);
    calibration.fields = describe(each.fields);
    calibration.networks = describe(each.networks);
  }
  if (failed)
    return std::nullopt;
  return result;
}

mlir::InFlightDiagnostic Describer::report(const MachineError &error) {
  mlir::InFlightDiagnostic diagnostic = files.error(ranges[error.where]);
  diagnostic << error.message;
  if (!error.note.empty())
    diagnostic.attachNote() << error.note;
  return diagnostic;
}

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

/// Removes the field at `where`; false if that is none.
static bool removeField(HardwareDescription &description, unsigned where) {
  auto removeFrom = [&](std::vector<HardwareField> &fields) {
    return std::erase_if(fields, [&](const HardwareField &field) {
             return field.where == where;
           }) != 0;
  };
  auto removeFromNetworks = [&](std::vector<HardwareNetwork> &networks) {
    return llvm::any_of(networks, [&](HardwareNetwork &network) {
      return removeFrom(network.fields);
    });
  };
  return removeFrom(description.fields) ||
         removeFromNetworks(description.networks) ||
         llvm::any_of(description.calibrations,
                      [&](HardwareCalibration &calibration) {
                        return removeFrom(calibration.fields) ||
                               removeFromNetworks(calibration.networks);
                      });
}

std::optional<Machine> shardc::importMachine(SourceFiles &files,
                                             const ast::HardwareDecl &decl,
                                             const Machine *catalogued) {
  if (!decl.hasBody) {
    if (catalogued)
      return *catalogued;
    files.error(decl.name.range)
            .append("unknown hardware '", decl.name.text, "'")
            .attachNote()
        << "did you mean " << likelyHardware(decl.name.text)
        << "? --list-hardware prints the catalogue";
    return std::nullopt;
  }
  Describer describer(files);
  std::optional<HardwareDescription> description = describer.describe(decl);
  if (!description)
    return std::nullopt;
  // Each wrong field is reported and left out. What the others then lack is no
  // error of its own.
  for (bool first = true;; first = false) {
    MachineOr<Machine> machine = buildMachine(*description, catalogued);
    auto *error = std::get_if<MachineError>(&machine);
    if (!error && first)
      return std::get<Machine>(std::move(machine));
    bool wrongField = error && removeField(*description, error->where);
    if (first || wrongField) {
      mlir::InFlightDiagnostic diagnostic = describer.report(*error);
      if (first && !catalogued)
        diagnostic.attachNote(files.location(decl.name.range))
            << "'" << decl.name.text
            << "' is not in the catalogue, so this is a new machine; the "
               "nearest name is "
            << likelyHardware(decl.name.text);
    }
    if (!wrongField)
      return std::nullopt;
  }
}

/// The range of a calibration's `like`.
static SMRange likeRange(const ast::HardwareDecl &decl) {
  for (const ast::CalibrationDecl &calibration : decl.calibrations)
    for (const ast::HardwareFieldDecl &field : calibration.fields)
      if (field.name.text == "like")
        return field.value.range;
  return decl.name.range;
}

/// Whether the machine that a calibration borrows from is in the catalogue.
static bool checkLender(SourceFiles &files, const ast::HardwareDecl &decl,
                        const Machine &machine) {
  const std::string &lender = machine.calibration.like;
  if (lender.empty() || llvm::is_contained(catalogueNames(), lender))
    return true;
  files.error(likeRange(decl))
          .append("a calibration can be like a machine of the catalogue, but '",
                  lender, "' is none")
          .attachNote()
      << "did you mean " << likelyHardware(lender) << "?";
  return false;
}

bool shardc::calibrateHardware(SourceFiles &files, SMRange where,
                               Machine &machine) {
  bool isMeasured = calibrate(machine, nullptr);
  // A lender may have borrowed itself; two may be like each other.
  llvm::StringSet<> asked;
  std::string next = machine.calibration.like;
  while (!next.empty() && asked.insert(next).second) {
    std::optional<Machine> lender = catalogueMachine(next);
    isMeasured = calibrate(machine, &*lender);
    next = lender->calibration.like;
  }
  if (isMeasured)
    return true;
  files.error(where)
          .append("hardware '", machine.name,
                  "' has no calibration, which --calibrated needs")
          .attachNote()
      << "give it a 'calibration' block: figures, or 'like = NAME' to take "
         "those of a relative in the catalogue";
  return false;
}

std::optional<Machine> shardc::importHardware(
    SourceFiles &files, const ast::HardwareDecl &decl,
    llvm::function_ref<std::optional<int64_t>(const ast::DimExpr &)> evaluate) {
  std::optional<Machine> catalogued = catalogueMachine(decl.name.text);
  std::optional<Machine> machine =
      importMachine(files, decl, catalogued ? &*catalogued : nullptr);
  if (machine && !checkLender(files, decl, *machine))
    return std::nullopt;
  llvm::SmallVector<int64_t, 4> shape;
  bool evaluated = true;
  for (const ast::DimExprPtr &extent : decl.shape) {
    std::optional<int64_t> value = evaluate(*extent);
    evaluated &= value.has_value();
    shape.push_back(value.value_or(1));
  }
  if (!machine || !evaluated)
    return std::nullopt;
  SMRange where = decl.name.range;
  if (decl.hasShape)
    where = join(decl.shape.front()->range, decl.shape.back()->range);
  Describer describer(files);
  MachineOr<Machine> shaped =
      withShape(std::move(*machine), shape, describer.where(where));
  if (auto *error = std::get_if<MachineError>(&shaped)) {
    describer.report(*error);
    return std::nullopt;
  }
  return std::get<Machine>(std::move(shaped));
}
