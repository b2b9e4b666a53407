"""Reshaping, joining, splitting, repeating, padding."""

from __future__ import annotations

from compat.tables._inputs import rows

TABLE = {
    "jax.numpy.reshape": rows("""
        f(a,(3,2))
        f(a,-1)
        f(a,(3,-1))
        f(a,(3,2),order='F')
        f(a,-1,order='F')
        f(a,6)
        f(a,(6,),copy=True)
        f(a,(6,),copy=False)
        f(s,())
        f(s,(1,1))
        f(z,(3,0))
        f(z,(-1,3))
        f(z,(-1,))
        f(a,(one,6))
        f(1,(1,))
        f(a,np.array([3,2]))
    """) + rows("""
        f(a,(3,2),order='A')
        f(a,(3,2),'K')
        f(a,(3,2),order='Q')
        f(a,(4,2))
    """, raises=True),
    "jax.numpy.ravel": rows("""
        f(a)
        f(a,'F')
        f(x3,order='F')
        f(s)
        f(2)
    """) + rows("""
        f(a,order='A')
        f(a,'K')
        f([1])
        f(a,order='Q')
    """, raises=True),
    "jax.numpy.transpose": rows("""
        f(a)
        f(x3,(1,2,0))
        f(x3,[1,2,0])
        f(x3,(-1,0,1))
        f(s)
        f(x5)
    """) + rows("""
        f(x3,(0,1))
        f(x3,(0,0,1))
        f(x3,(0,1,3))
        f(v,0)
    """, raises=True),
    "jax.numpy.permute_dims": rows("""
        f(a,(1,0))
        f(a,axes=(1,0))
    """),
    "jax.numpy.matrix_transpose": rows("""
        f(a)
        f(x3)
    """) + rows("""
        f(v)
    """, raises=True),
    "jax.numpy.swapaxes": rows("""
        f(x3,0,2)
        f(x3,0,-1)
        f(a,0,0)
    """) + rows("""
        f(x3,0,5)
    """, raises=True),
    "jax.numpy.moveaxis": rows("""
        f(x3,0,2)
        f(x3,(0,1),(2,0))
        f(x3,[0,1],[-1,-2])
        f(x3,(0,1),(1,1))
        f(x5,-1,0)
        f(x3,one,0)
    """) + rows("""
        f(x3,(0,1),2)
        f(x3,0,3)
        f(x3,(0,0),(1,2))
        f(x3,1.,0)
    """, raises=True),
    "jax.numpy.rollaxis": rows("""
        f(x3,2)
        f(x3,0,3)
        f(x3,1,-1)
    """) + rows("""
        f(x3,3)
        f(x3,0,4)
    """, raises=True),
    "jax.numpy.expand_dims": rows("""
        f(a,0)
        f(a,-1)
        f(a,(0,2))
        f(a,[0,-1])
        f(s,0)
        f(1.,0)
        f(a,())
        f(a,one)
    """) + rows("""
        f(a,3)
        f(a,(0,0))
        f([1],0)
        f(a,1.)
    """, raises=True),
    "jax.numpy.squeeze": rows("""
        f(x5)
        f(x5,1)
        f(x5,(1,))
        f(a)
        f(s)
        f(x5,-4)
        f(x5,())
        f(3.)
    """) + rows("""
        f(x5,0)
        f(x5,9)
        f([[1]])
        f(x5,(1,1))
    """, raises=True),
    "jax.numpy.broadcast_to": rows("""
        f(v,(2,3))
        f(s,(2,))
        f(v,3)
        f(1,(2,2))
        f(e,(0,0))
        f(v,(one,3))
        f(1.,())
        f(v[:,None],(3,4))
        f(cm,(2,2,3))
    """) + rows("""
        f(a,(3,2))
        f(a,(3,))
        f([1,2],(2,2))
        f(v,(-1,3))
    """, raises=True),
    "jax.numpy.broadcast_arrays": rows("""
        f(a,v)
        f(a,1)
        f()
        f(s,k,v[:,None])
    """) + rows("""
        f(a,b)
        f([1,2],1)
    """, raises=True),
    "jax.numpy.broadcast_shapes": rows("""
        f((2,3),(3,))
        f()
        f((1,),(5,1))
        f(3,(2,3))
        f((0,),(1,))
        f([1,2],(2,2))
    """) + rows("""
        f((2,3),(4,))
        f((2,),(-1,))
    """, raises=True),
    "jax.numpy.atleast_1d": rows("""
        f(s)
        f(a)
        f(1)
        f(s,v)
        f()
    """) + rows("""
        f(1,[2])
        f([1,2])
    """, raises=True),
    "jax.numpy.atleast_2d": rows("""
        f(s)
        f(v)
        f(a,x3)
        f(1.5)
    """) + rows("""
        f('a')
    """, raises=True),
    "jax.numpy.atleast_3d": rows("""
        f(s)
        f(v)
        f(a)
        f(x3,v)
    """),
    "jax.numpy.concatenate": rows("""
        f([a,a])
        f((a,a),axis=1)
        f([a,a],axis=None)
        f([a,i])
        f([v,k])
        f([v,t,c])
        f([h,v])
        f([a])
        f(a)
        f(x3)
        f(x3,axis=1)
        f(x3,axis=None)
        f([a,a],axis=-1)
        f([a,a],dtype=int)
        f([a,i],dtype='float16')
        f([z,a])
    """) + rows("""
        f([a,v])
        f([a,b])
        f([a,a],axis=2)
        f([])
    """, raises=True),
    "jax.numpy.concat": rows("""
        f([a,a])
        f([a,a],axis=1)
        f([a,a],axis=None)
        f((a,i))
    """),
    "jax.numpy.stack": rows("""
        f([a,a])
        f([a,a],1)
        f([a,a],-1)
        f([s,1])
        f([s,s])
        f([1,2.])
        f(a)
        f(a,axis=1)
        f(x3,axis=2)
        f([v,k])
        f([v,k],dtype='int8')
        f(v)
        f((v,))
        f([v]*3,axis=1)
        f([z,z])
        f([t,k])
    """) + rows("""
        f([a,a],3)
        f([a,v])
        f([])
        f([v,v],out=1)
    """, raises=True),
    "jax.numpy.vstack": rows("""
        f([v,v])
        f([a,v])
        f([s,1])
        f(a)
        f(x3)
        f([v,k],dtype=float)
        f(v)
    """) + rows("""
        f([v,w])
        f([])
        f([[1,2],[3,4]])
        f((v,e))
    """, raises=True),
    "jax.numpy.hstack": rows("""
        f([v,w])
        f([a,a])
        f([s,v])
        f(a)
        f(x3)
        f([1,2])
        f([v,k],dtype=int)
        f(v)
    """) + rows("""
        f([a,v])
    """, raises=True),
    "jax.numpy.dstack": rows("""
        f([v,v])
        f([a,a])
        f([x3,x3])
        f(a)
        f([s,s])
        f([a,a],dtype=int)
    """),
    "jax.numpy.column_stack": rows("""
        f([v,v])
        f([v,v[:,None]])
        f([a,a])
        f(a)
        f([s,s])
        f([x3,x3])
        f(x3)
        f([v,k])
    """),
    "jax.numpy.block": rows("""
        f([v,v])
        f([[a],[a]])
        f([[a,a],[a,a]])
        f([[1,v],[2,v]])
        f([[v],[v]])
        f([s,s])
        f(a)
        f([[x3]])
        f([1,2])
        f(1)
        f([[a,jnp.zeros((2,1))],[jnp.ones((1,4))]])
        f([[[a]],[[a]]])
    """) + rows("""
        f([])
        f([[a],a])
        f([[a,v]])
        f((v,v))
    """, raises=True),
    "jax.numpy.split": rows("""
        f(w,5)
        f(w,[1,3])
        f(a,3,axis=1)
        f(a,(1,),1)
        f(w,one)
        f(w,np.array([1,2]))
        f(w,[])
        f(w,5.)
        f(w,(2,2))
        f(z,3,1)
        f(w,[1,one])
        f(w,[0,5])
        f(w,[1,9])
    """) + rows("""
        f(w,2)
        f(a,2,axis=3)
        f(w,[3,1])
    """, raises=True),
    "jax.numpy.array_split": rows("""
        f(w,2)
        f(w,3)
        f(w,7)
        f(a,2,1)
        f(w,[2])
        f(z,2)
        f(w,[1,-1])
    """),
    "jax.numpy.hsplit": rows("""
        f(a,3)
        f(w,5)
        f(x3,[1])
    """) + rows("""
        f(s,1)
    """, raises=True),
    "jax.numpy.vsplit": rows("""
        f(a,2)
        f(v,3)
        f(a,[1])
    """),
    "jax.numpy.dsplit": rows("""
        f(x3,2)
    """) + rows("""
        f(a,1)
    """, raises=True),
    "jax.numpy.unstack": rows("""
        f(a)
        f(a,axis=1)
        f(x3,axis=-1)
        f(z)
    """) + rows("""
        f(s)
        f([1,2])
        f(a,axis=2)
    """, raises=True),
    "jax.numpy.tile": rows("""
        f(v,2)
        f(v,(2,2))
        f(a,2)
        f(a,(2,1,2))
        f(s,3)
        f(a,())
        f(a,0)
        f(1,(2,))
        f(v,one)
        f(v,[2])
        f(v,2.)
        f(a,(1,1))
        f(t,2)
        f(c,(2,1))
        f(v,np.array([2,1]))
        f(z,(2,2))
    """) + rows("""
        f([1,2],2)
    """, raises=True),
    "jax.numpy.repeat": rows("""
        f(v,2)
        f(a,2)
        f(a,2,axis=0)
        f(a,2,axis=1)
        f(a,jnp.array([1,2]),axis=0)
        f(s,3)
        f(s,3,axis=0)
        f(2,3)
        f(v,0)
        f(v,jnp.abs(k))
        f(v,p3)
        f(v,p3,total_repeat_length=5)
        f(v,p3,total_repeat_length=2)
        f(v,p3,total_repeat_length=3)
        f(a,p3,axis=1,total_repeat_length=4)
        f(v,one,total_repeat_length=4)
    """) + rows("""
        f(v,[1,0,2])
        f(a,(1,2),axis=0)
        f(v,[1,2])
        f([1,2],2)
    """, raises=True),
    "jax.numpy.resize": rows("""
        f(a,(3,3))
        f(a,4)
        f(a,(2,2))
        f(a,0)
        f(e,(2,))
        f(s,(2,))
        f(t,5)
        f(a,())
    """) + rows("""
        f(a,(-1,))
        f([1,2],3)
        f(a,(2,-1))
    """, raises=True),
    "jax.numpy.flip": rows("""
        f(a)
        f(a,0)
        f(a,(0,1))
        f(a,-1)
        f(s)
        f(a,())
        f(1)
        f(a,[0])
        f(a,one)
    """) + rows("""
        f(a,2)
        f([1,2])
        f(a,(0,0))
        f(s,0)
    """, raises=True),
    "jax.numpy.fliplr": rows("""
        f(a)
        f(x3)
    """) + rows("""
        f(v)
    """, raises=True),
    "jax.numpy.flipud": rows("""
        f(a)
        f(v)
    """) + rows("""
        f(s)
    """, raises=True),
    "jax.numpy.rot90": rows("""
        f(a)
        f(a,2)
        f(a,3)
        f(a,4)
        f(a,-1)
        f(x3,1,(1,2))
        f(x3,1,(2,0))
        f(a,1.)
        f(x3,5,(-1,0))
        f(a,1.5)
    """) + rows("""
        f(v)
        f(a,1,(0,0))
        f(a,1,(0,1,2))
        f(a,one)
    """, raises=True),
    "jax.numpy.roll": rows("""
        f(v,1)
        f(a,1)
        f(a,1,0)
        f(a,1,1)
        f(a,(1,2),(0,1))
        f(a,(1,2),0)
        f(a,1,(0,1))
        f(a,-7)
        f(a,one)
        f(a,one,1)
        f(a,k[:2],(0,1))
        f(a,k[:2],axis=[0,1])
        f(a,1.5)
        f(s,1)
        f(z,1,0)
        f(z,1,1)
    """) + rows("""
        f(a,1,2)
        f([1,2],1)
        f(a,(1,2,3),(0,1))
        f(a,i)
    """, raises=True),
    "jax.numpy.pad": rows("""
        f(v,1)
        f(v,(1,2))
        f(a,((1,2),(0,1)))
        f(a,(1,2))
        f(a,((1,2),))
        f(v,0)
        f(s,0)
        f(s,1)
        f(v,one)
        f(v,(one,1))
        f(v,k[:2])
        f(1.,0)
        f(v,np.array([1,2]))
        f(v,1,constant_values=2)
        f(v,1,constant_values=(1,2))
        f(a,1,constant_values=((1,2),(3,4)))
    """, tol="accumulate") + rows("""
        f(a,[[1],[2]])
        f(v,-1)
        f(v,1.5)
        f(v,(1,2,3))
    """, raises=True),
    "jax.numpy.delete": rows("""
        f(w,1)
        f(a,0,axis=0)
        f(a,1,axis=1)
        f(a,1)
        f(w,slice(1,3))
        f(w,slice(None,None,2))
        f(w,-1)
        f(v,t)
        f(v,np.array([True,False,True]))
        f(w,jnp.array([1,2]))
        f(w,one)
        f(w,q)
        f(w,q[:2],assume_unique_indices=True)
        f(s,0)
        f(a,q[:2],axis=1,assume_unique_indices=True)
        f(w,slice(9,1,-2))
    """) + rows("""
        f(w,[1,2])
        f(w,9)
        f(w,-9)
        f(w,[9])
    """, raises=True),
    "jax.numpy.insert": rows("""
        f(w,1,9.)
        f(a,1,9.)
        f(a,1,9.,axis=0)
        f(a,1,v,axis=0)
        f(w,slice(0,4,2),1.)
        f(w,-1,1.)
        f(w,9,1.)
        f(w,-9,1.)
        f(w,one,1.)
        f(w,q,1.)
        f(w,q,q)
        f(k,1,2.7)
        f(s,0,1.)
        f(w,1,s)
        f(a,one,v,axis=0)
        f(w,q,far.astype(jnp.float32)[:1])
    """) + rows("""
        f(w,[1,3],[8.,9.])
        f(w,[1,3],8.)
        f(w,[3,1],[8.,9.])
        f(w,[1,1],[8.,9.])
    """, raises=True),
    "jax.numpy.append": rows("""
        f(v,w)
        f(a,v)
        f(a,a,axis=0)
        f(v,1)
        f(k,1.5)
        f(s,s)
        f(1,2)
        f(v,k)
    """) + rows("""
        f(a,v,axis=0)
        f([1],[2])
        f(a,a,axis=2)
    """, raises=True),
}
