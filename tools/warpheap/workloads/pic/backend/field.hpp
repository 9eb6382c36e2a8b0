// SPDX-License-Identifier: Apache-2.0
// From charge to force on the periodic plane, by Fourier transforms on the device. The potential is
// the exact solution of the five-point Laplace equation, the field its difference over two cells.
// The transform has Stockham's form: each pass reads one array and writes the other, in order, so
// no reversal is needed. Double precision; a plane is small beside its particles.
#pragma once

#include <cmath>
#include <utility>

#include "physics.hpp"

namespace warpheap::tool::pic { inline namespace WARPHEAP_BACKEND {

struct complex {
  double real, imaginary;
};

/// Kernel: charges as complex numbers. The transform drops their mean, as if ions that do not move
/// balanced it.
struct to_complex {
  double unit;  ///< charge of a whole particle's weight

  WARPHEAP_DEVICE void operator()(u64 const* charge, complex* density, u32 cells) const {
    u64 const i = global_thread_index();
    if (i < cells) density[i] = {static_cast<double>(charge[i]) * unit, 0};
  }
};

/// Kernel: one pass along one side, with a thread for each pair.
struct transform_pass {
  u32 side_log2;     ///< of the transform's length
  u32 stride;        ///< from one element to the next
  u32 next_row;      ///< from one row to the next
  u32 pass;          ///< 0 to side_log2 - 1
  double direction;  ///< 1 forward, -1 back

  WARPHEAP_DEVICE void operator()(complex const* from, complex* to, complex const* roots, u32 pairs) const {
    u32 const thread = static_cast<u32>(global_thread_index());
    if (thread >= pairs) return;
    u32 const half = 1u << (side_log2 - 1), done = 1u << pass;
    // Neighbouring threads read neighbouring elements.
    u32 const pair = stride == 1 ? thread % half : thread / stride, row = stride == 1 ? thread / half : thread % stride;
    u32 const low = pair & (done - 1), start = row * next_row;
    complex const root = roots[low << (side_log2 - 1 - pass)];
    complex const first = from[start + pair * stride], other = from[start + (pair + half) * stride];
    double const imaginary = direction * root.imaginary;
    complex const second{other.real * root.real - other.imaginary * imaginary,
                         other.real * imaginary + other.imaginary * root.real};
    u32 const place = start + (2 * pair - low) * stride;
    to[place] = {first.real + second.real, first.imaginary + second.imaginary};
    to[place + done * stride] = {first.real - second.real, first.imaginary - second.imaginary};
  }
};

/// Kernel: divides the transformed charge by the Laplace operator's eigenvalues, and by the factor
/// of two transforms.
struct divide_by_laplace {
  WARPHEAP_DEVICE void operator()(complex* values, double const* eigen_x, double const* eigen_y, plane space) const {
    u64 const i = global_thread_index();
    if (i >= space.cells()) return;
    double const eigenvalue = eigen_x[i & (space.cells_x() - 1)] + eigen_y[i >> space.x_log2];
    double const factor = i == 0 ? 0 : 1 / (eigenvalue * space.cells());
    values[i] = {values[i].real * factor, values[i].imaginary * factor};
  }
};

/// Kernel: the field at every node.
struct differentiate {
  WARPHEAP_DEVICE void operator()(complex const* potential, vector* field, plane space) const {
    u64 const i = global_thread_index();
    if (i >= space.cells()) return;
    u32 const x = static_cast<u32>(i) & (space.cells_x() - 1), y = static_cast<u32>(i) >> space.x_log2;
    auto const at = [&](u32 node_x, u32 node_y) { return potential[space.node(node_x, node_y)].real; };
    field[i] = {static_cast<float>(0.5 * (at(x - 1, y) - at(x + 1, y))),
                static_cast<float>(0.5 * (at(x, y - 1) - at(x, y + 1)))};
  }
};

/// Kernel: twice the field's energy, in parts of 2^-32.
struct sum_field_energy {
  double unit;  ///< charge of a whole particle's weight

  WARPHEAP_DEVICE void operator()(complex const* potential, u64 const* charge, u32 cells, u64* twice_energy) const {
    u64 const i = global_thread_index();
    if (i >= cells) return;
    double const energy = potential[i].real * static_cast<double>(charge[i]) * unit;
    add(*twice_energy, static_cast<u64>(static_cast<i64>(energy * (u64{1} << 32))));
  }
};

/// The field of one plane, in device memory.
class field_solver {
 public:
  field_solver(plane space, u32 particles_per_cell)
      : space_{space},
        unit_{-1.0 / particles_per_cell / (1u << weight_log2)},
        charge_(space.cells()),
        one_(space.cells()),
        other_(space.cells()),
        field_(space.cells()),
        roots_x_{roots(space.cells_x())},
        roots_y_{roots(space.cells_y())},
        eigen_x_{eigenvalues(space.cells_x())},
        eigen_y_{eigenvalues(space.cells_y())} {}

  vector const* field() const { return field_.data(); }

  /// Puts kernels on the default stream that compute the field of the particles where they are now.
  void solve(list_table const& table) {
    ::warpheap::backend::fill_bytes(charge_.data(), 0, charge_.size_bytes());
    launch(warp_each(table.size()), deposit_charge{}, table, charge_.data());
    complex *from = one_.data(), *to = other_.data();
    launch(shape_for(space_.cells()), to_complex{unit_}, charge_.data(), from, space_.cells());
    transform(from, to, 1);
    launch(shape_for(space_.cells()), divide_by_laplace{}, from, eigen_x_.data(), eigen_y_.data(), space_);
    transform(from, to, -1);
    launch(shape_for(space_.cells()), differentiate{}, from, field_.data(), space_);
    potential_ = from;
  }

  /// The energy of the field that was solved last; a cell's particles together have a mass of 1.
  double energy() const {
    device_buffer<u64> const twice(1);
    launch(shape_for(space_.cells()), sum_field_energy{unit_}, potential_, charge_.data(), space_.cells(),
           twice.data());
    synchronize();
    return 0.5 * static_cast<double>(static_cast<i64>(twice[0])) / (u64{1} << 32);
  }

 private:
  /// Both sides of the plane; the result is in `from`.
  void transform(complex*& from, complex*& to, double direction) const {
    u32 const pairs = space_.cells() / 2;
    for (u32 pass = 0; pass < space_.x_log2; ++pass, std::swap(from, to))
      launch(shape_for(pairs), transform_pass{space_.x_log2, 1, space_.cells_x(), pass, direction}, from, to,
             roots_x_.data(), pairs);
    for (u32 pass = 0; pass < space_.y_log2; ++pass, std::swap(from, to))
      launch(shape_for(pairs), transform_pass{space_.y_log2, space_.cells_x(), 1, pass, direction}, from, to,
             roots_y_.data(), pairs);
  }

  static std::vector<complex> roots(u32 side) {
    std::vector<complex> made(side / 2);
    for (u32 i = 0; i < side / 2; ++i) made[i] = {std::cos(2 * pi * i / side), -std::sin(2 * pi * i / side)};
    return made;
  }

  static std::vector<double> eigenvalues(u32 side) {
    std::vector<double> made(side);
    for (u32 i = 0; i < side; ++i) made[i] = 4 * std::sin(pi * i / side) * std::sin(pi * i / side);
    return made;
  }

  static constexpr double pi = 3.14159265358979323846;

  plane space_;
  double unit_;
  device_buffer<u64> charge_;
  device_buffer<complex> one_, other_;
  device_buffer<vector> field_;
  device_buffer<complex> roots_x_, roots_y_;
  device_buffer<double> eigen_x_, eigen_y_;
  complex const* potential_ = nullptr;
};

}}  // namespace warpheap::tool::pic::WARPHEAP_BACKEND
