"""jax.scipy.linalg: linear algebra with SciPy's arguments."""

from __future__ import annotations

from maxjax._base.missing import explain_missing_names
from maxjax._higher_order.function_stages import add_stages
from maxjax.scipy.linalg._decompositions import cholesky as cholesky
from maxjax.scipy.linalg._decompositions import lu as lu
from maxjax.scipy.linalg._decompositions import polar as polar
from maxjax.scipy.linalg._decompositions import qr as qr
from maxjax.scipy.linalg._decompositions import qr_multiply as qr_multiply
from maxjax.scipy.linalg._decompositions import svd as svd
from maxjax.scipy.linalg._eigenvalues import eigh as eigh
from maxjax.scipy.linalg._eigenvalues import eigh_tridiagonal as eigh_tridiagonal
from maxjax.scipy.linalg._eigenvalues import hessenberg as hessenberg
from maxjax.scipy.linalg._eigenvalues import rsf2csf as rsf2csf
from maxjax.scipy.linalg._eigenvalues import schur as schur
from maxjax.scipy.linalg._functions import expm as expm
from maxjax.scipy.linalg._functions import expm_frechet as expm_frechet
from maxjax.scipy.linalg._functions import funm as funm
from maxjax.scipy.linalg._functions import solve_sylvester as solve_sylvester
from maxjax.scipy.linalg._functions import sqrtm as sqrtm
from maxjax.scipy.linalg._linear_systems import cho_factor as cho_factor
from maxjax.scipy.linalg._linear_systems import cho_solve as cho_solve
from maxjax.scipy.linalg._linear_systems import det as det
from maxjax.scipy.linalg._linear_systems import inv as inv
from maxjax.scipy.linalg._linear_systems import lu_factor as lu_factor
from maxjax.scipy.linalg._linear_systems import lu_solve as lu_solve
from maxjax.scipy.linalg._linear_systems import solve as solve
from maxjax.scipy.linalg._linear_systems import solve_triangular as solve_triangular
from maxjax.scipy.linalg._matrices import block_diag as block_diag
from maxjax.scipy.linalg._matrices import circulant as circulant
from maxjax.scipy.linalg._matrices import companion as companion
from maxjax.scipy.linalg._matrices import convolution_matrix as convolution_matrix
from maxjax.scipy.linalg._matrices import dft as dft
from maxjax.scipy.linalg._matrices import fiedler as fiedler
from maxjax.scipy.linalg._matrices import fiedler_companion as fiedler_companion
from maxjax.scipy.linalg._matrices import hadamard as hadamard
from maxjax.scipy.linalg._matrices import hankel as hankel
from maxjax.scipy.linalg._matrices import helmert as helmert
from maxjax.scipy.linalg._matrices import hilbert as hilbert
from maxjax.scipy.linalg._matrices import invhilbert as invhilbert
from maxjax.scipy.linalg._matrices import invpascal as invpascal
from maxjax.scipy.linalg._matrices import leslie as leslie
from maxjax.scipy.linalg._matrices import pascal as pascal
from maxjax.scipy.linalg._matrices import toeplitz as toeplitz

explain_missing_names(__name__)

add_stages(globals(), """
    block_diag convolution_matrix dft eigh_tridiagonal expm expm_frechet hadamard helmert
    hessenberg hilbert invhilbert invpascal lu lu_factor lu_solve pascal polar rsf2csf
    solve_sylvester
""")
