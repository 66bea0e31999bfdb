//===- Descriptions.h - Hardware for the tests of machines ----*- C++ -*-===//
//
// Builders of hardware descriptions and machines, as the front end makes them.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TEST_UNIT_MACHINE_DESCRIPTIONS_H
#define SHARDC_TEST_UNIT_MACHINE_DESCRIPTIONS_H

#include "shardc/Machine/Machine.h"
#include <gtest/gtest.h>

namespace shardc {

using Quantity = HardwareField::Quantity;

inline HardwareField quantity(llvm::StringRef name, double number,
                              Quantity quantity, unsigned where = 0) {
  HardwareField field;
  field.name = name.str();
  field.number = number;
  field.quantity = quantity;
  field.where = where;
  return field;
}

inline HardwareField word(llvm::StringRef name, llvm::StringRef word,
                          llvm::ArrayRef<int64_t> arguments = {},
                          unsigned where = 0) {
  HardwareField field;
  field.name = name.str();
  field.word = word.str();
  field.list.assign(arguments.begin(), arguments.end());
  field.where = where;
  return field;
}

inline HardwareField list(llvm::StringRef name, llvm::ArrayRef<int64_t> values,
                          unsigned where = 0) {
  return word(name, "", values, where);
}

/// A TPU of 16x16 with slices joined by DCN.
inline HardwareDescription tpuDescription() {
  HardwareDescription tpu;
  tpu.name = "tpu";
  tpu.where = 1;
  tpu.fields = {quantity("flops.bf16", 197e12, Quantity::FlopsPerSecond),
                quantity("hbm.capacity", 16e9, Quantity::Bytes),
                quantity("hbm.bandwidth", 820e9, Quantity::BytesPerSecond),
                list("shape.max", {16, 16})};
  tpu.networks = {
      {"ici",
       "torus",
       {"x", "y"},
       {quantity("link.bandwidth", 45e9, Quantity::BytesPerSecond),
        quantity("latency", 1e-6, Quantity::Seconds),
        quantity("wrap", 16, Quantity::None)},
       2},
      {"dcn",
       "switch",
       {"slice"},
       {quantity("bandwidth", 3.125e9, Quantity::BytesPerSecond),
        word("per", "chip"), quantity("latency", 10e-6, Quantity::Seconds)},
       3}};
  return tpu;
}

/// Nodes of 8 GPUs, leaves of 32 nodes, 4 leaves.
inline HardwareDescription gpuDescription() {
  HardwareDescription gpu;
  gpu.name = "h100";
  gpu.where = 1;
  gpu.fields = {quantity("flops.bf16", 989e12, Quantity::FlopsPerSecond),
                quantity("hbm.capacity", 80e9, Quantity::Bytes),
                quantity("hbm.bandwidth", 3.35e12, Quantity::BytesPerSecond),
                list("shape.max", {4, 32, 8})};
  auto network = [](llvm::StringRef name, llvm::StringRef member,
                    double bandwidth, double latency) {
    return HardwareNetwork{
        name.str(),
        "switch",
        {member.str()},
        {quantity("bandwidth", bandwidth, Quantity::BytesPerSecond),
         quantity("latency", latency, Quantity::Seconds)},
        2};
  };
  gpu.networks = {network("nvlink", "gpu", 450e9, 3e-6),
                  network("leaf", "node", 400e9, 8e-6),
                  network("spine", "leaf", 12.8e12, 8e-6)};
  return gpu;
}

/// The value, which the test expects to be there.
template <typename T> T value(const MachineOr<T> &result) {
  if (const auto *error = std::get_if<MachineError>(&result)) {
    ADD_FAILURE() << error->message;
    return T();
  }
  return std::get<T>(result);
}

/// The error, which the test expects to be there.
template <typename T> MachineError error(const MachineOr<T> &result) {
  if (const auto *error = std::get_if<MachineError>(&result))
    return *error;
  ADD_FAILURE() << "expected an error";
  return {};
}

inline Machine shaped(const HardwareDescription &description,
                      llvm::ArrayRef<int64_t> shape) {
  return value(withShape(value(buildMachine(description, nullptr)), shape, 0));
}

} // namespace shardc

#endif // SHARDC_TEST_UNIT_MACHINE_DESCRIPTIONS_H
