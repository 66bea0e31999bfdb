//===- ReadReport.h - The JSON report as it is read back ------*- C++ -*-===//

#ifndef SHARDC_LIB_PICTURES_READREPORT_H
#define SHARDC_LIB_PICTURES_READREPORT_H

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace shardc {

/// The schema of the report of one plan.
inline constexpr llvm::StringLiteral kPlanSchema = "shardc.cost/1";

/// A report of any schema; an error that says what is wrong with the text.
llvm::Expected<llvm::json::Object> readReport(llvm::StringRef text);

/// The report of one plan, for an option that needs it.
llvm::Expected<llvm::json::Object> readPlanReport(llvm::StringRef text,
                                                  llvm::StringRef option);

/// The objects in an array of an object; none if there is no such array.
std::vector<const llvm::json::Object *> objectsIn(const llvm::json::Object &in,
                                                  llvm::StringRef key);
/// A string of an object; empty if there is none.
llvm::StringRef stringIn(const llvm::json::Object &in, llvm::StringRef key);
/// A number of an object; 0 if there is none.
double numberIn(const llvm::json::Object &in, llvm::StringRef key);
int64_t integerIn(const llvm::json::Object &in, llvm::StringRef key);
/// The strings in an array of an object.
std::vector<std::string> stringsIn(const llvm::json::Object &in,
                                   llvm::StringRef key);

} // namespace shardc

#endif // SHARDC_LIB_PICTURES_READREPORT_H
