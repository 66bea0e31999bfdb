//===- Places.cpp - Where the parts of an operation stand -----------------===//

#include "shardc/Dialect/Shd/IR/Places.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace shardc;

/// Metadata of a fused location: that of the whole, then those of the parts.
static constexpr StringLiteral kPlaces = "shd.places";

static FusedLoc placesOf(Operation *op) {
  auto fused = dyn_cast<FusedLocWith<StringAttr>>(op->getLoc());
  return fused && fused.getMetadata() == kPlaces ? FusedLoc(fused) : FusedLoc();
}

LogicalResult shd::verifyAt(Operation *op, Location whole,
                            ArrayRef<PartPlace> places) {
  MLIRContext *context = op->getContext();
  SmallVector<Location> locations{whole};
  for (const auto &[part, place] : places)
    locations.push_back(
        NameLoc::get(StringAttr::get(context, part.name), place));
  Location loc = op->getLoc();
  op->setLoc(
      FusedLoc::get(context, locations, StringAttr::get(context, kPlaces)));
  LogicalResult verified = op->getName().verifyInvariants(op);
  op->setLoc(loc);
  return verified;
}

InFlightDiagnostic shd::emitErrorAt(Operation *op, const OpPart &part) {
  FusedLoc places = placesOf(op);
  if (!places)
    return op->emitOpError();
  for (Location place : places.getLocations())
    if (auto named = dyn_cast<NameLoc>(place);
        named && named.getName() == part.name)
      return emitError(named.getChildLoc());
  return emitError(places.getLocations().front());
}
