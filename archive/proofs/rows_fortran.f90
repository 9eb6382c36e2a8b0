! SPDX-License-Identifier: Apache-2.0
! OpenMP offload in Fortran: for each row, the target region allocates numbers by the C function malloc, combines them,
! and frees them. Nothing here knows of Warpheap.
subroutine combine_rows(n, combined) bind(C, name="combine_rows")
  use, intrinsic :: iso_c_binding
  implicit none
  interface
    function c_malloc(bytes) bind(C, name="malloc") result(block)
      import
      !$omp declare target
      integer(c_size_t), value :: bytes
      type(c_ptr) :: block
    end function
    subroutine c_free(block) bind(C, name="free")
      import
      !$omp declare target
      type(c_ptr), value :: block
    end subroutine
  end interface
  integer(c_int), value :: n
  integer(c_int), intent(out) :: combined(n)
  integer(c_int) :: row

  !$omp target parallel do map(from: combined)
  do row = 1, n
    call combine(row, 16 + mod(row, 100), combined(row))
  end do

contains

  ! -1 if there is no memory.
  subroutine combine(row, length, combined)
    !$omp declare target
    integer(c_int), intent(in) :: row, length
    integer(c_int), intent(out) :: combined
    integer(c_int), pointer :: numbers(:)
    integer(c_int) :: k
    type(c_ptr) :: block
    combined = -1
    block = c_malloc(int(4 * length, c_size_t))
    if (.not. c_associated(block)) return
    call c_f_pointer(block, numbers, [length])
    do k = 1, length
      numbers(k) = row + k
    end do
    combined = 0
    do k = length, 1, -1
      combined = ieor(combined, numbers(k))
    end do
    call c_free(block)
  end subroutine
end subroutine
