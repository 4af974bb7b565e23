// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace artune {

/// The private verb `ar-tune worker --fd N`: the only place of the program where CUDA, NCCL and NVML are called.
/// Started by SupervisedMachine; on no help page.
int worker_main(int argc, const char* const* argv);

}  // namespace artune
