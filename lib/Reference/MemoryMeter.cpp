//===- MemoryMeter.cpp - Counts the bytes that devices hold ---------------===//

#include "MemoryMeter.h"
#include <algorithm>

using namespace shardc;

void MemoryMeter::hold(Key key, const DeviceBytes &bytes) {
  DeviceBytes &before =
      held.try_emplace(key, DeviceBytes(live.size(), 0)).first->second;
  for (unsigned device = 0; device < live.size(); ++device)
    live[device] += bytes[device] - before[device];
  before = bytes;
}

void MemoryMeter::sample() {
  for (unsigned device = 0; device < live.size(); ++device)
    mostLive[device] = std::max(mostLive[device], live[device]);
}
