// SPDX-License-Identifier: Apache-2.0
// The derivative of a function that allocates: Enzyme makes it, with memory for the derivatives of
// the numbers in the block.
extern "C" __device__ double __enzyme_autodiff(void*, double);

__device__ double sum_of_squares(double x) {
  int const n = 10 + static_cast<int>(threadIdx.x);
  double* const numbers = static_cast<double*>(malloc(n * sizeof(double)));
  for (int i = 0; i < n; ++i) numbers[i] = i * x;
  double sum = 0;
  for (int i = n; i-- > 0;) sum += numbers[i] * numbers[i];
  free(numbers);
  return sum;
}

extern "C" __global__ void differentiate(double* derivatives, double x) {
  derivatives[threadIdx.x] = __enzyme_autodiff(reinterpret_cast<void*>(sum_of_squares), x);
}
