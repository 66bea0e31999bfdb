//===- Catalogue.h - Printing the hardware catalogue -----------*- C++ -*-===//
//
// Output of --list-hardware (docs/CommandLine.md#the-json-of---list-hardware).
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TOOLS_SHARDC_CATALOGUE_H
#define SHARDC_TOOLS_SHARDC_CATALOGUE_H

#include "shardc/Frontend/CatalogueNotes.h"
#include "shardc/Machine/Machine.h"

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace shardc {

/// One line for each machine of the catalogue.
void printCatalogue(llvm::raw_ostream &os);

/// All figures of one machine, with their sources, and the intensities that
/// follow from them.
void printMachine(llvm::raw_ostream &os, const Machine &machine,
                  const CatalogueNotes &notes);

/// Machines of the catalogue in JSON, schema shardc.hardware/1.
void printCatalogueJson(llvm::raw_ostream &os,
                        llvm::ArrayRef<std::string> names);

/// The machine in its largest shape, with one member of each level that the
/// catalogue does not limit: critical intensities are stated there.
Machine inLargestShape(Machine machine);

/// `torus`, `switch` or `mesh`.
llvm::StringRef kindOf(const Network &network);

/// The field `wrap` of a torus, as in a hardware file.
std::string wrapOf(const Network &network);

} // namespace shardc

#endif // SHARDC_TOOLS_SHARDC_CATALOGUE_H
