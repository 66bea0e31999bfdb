//===- Catalogue.h - What --list-hardware prints ---------------*- C++ -*-===//
//
// Tables of the hardware catalogue for people.
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

} // namespace shardc

#endif // SHARDC_TOOLS_SHARDC_CATALOGUE_H
